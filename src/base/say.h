#pragma once
/* say - lines of our own on stderr: "agentkernel: ", the words, control characters made harmless.
 */

void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void say_text(const char *text); /* of any length */
