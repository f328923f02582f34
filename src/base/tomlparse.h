#pragma once
/*
 * tomlparse - the grammar of a TOML document; for toml.c only.
 */
#include "base/tomlscan.h"
#include "base/tomltree.h"

/* Fills an empty document; partially filled on failure. */
ERR_CHECKED int tomlparse_document(struct tomlscan *s, struct toml *t, struct err *e);
