/* detect - chooses an image for a command or a project; see detect.h. */
#include "policy/detect.h"

#include "base/cleanup.h"

#include <stdbool.h>
#include <string.h>

#define PYTHON "python:3.12-alpine"
#define NODE "node:22-alpine"
#define RUST "rust:1.85-alpine"
#define GO "golang:1.23-alpine"
#define RUBY "ruby:3.3-alpine"
#define JAVA "eclipse-temurin:21-alpine"
#define PHP "php:8.3-alpine"
#define GCC "gcc:14-bookworm"
#define DOTNET "mcr.microsoft.com/dotnet/sdk:8.0"
#define TERRAFORM "hashicorp/terraform:1.10"
#define LUA "nickblah/lua:5.4-alpine"
#define ELIXIR "elixir:1.16-alpine"
#define SHELL "alpine:3.20"

#define COMMANDS_MAX 8

static const struct {
	const char *image;
	const char *commands[COMMANDS_MAX];
} by_command[] = {
	{ PYTHON, { "python", "python3", "pip", "pip3", "poetry", "uv", "pytest" } },
	{ NODE, { "node", "npm", "npx", "yarn", "pnpm", "bun" } },
	{ RUST, { "cargo", "rustc" } },
	{ GO, { "go", "gofmt" } },
	{ RUBY, { "ruby", "bundle", "rails", "rake", "gem" } },
	{ JAVA, { "java", "javac", "mvn", "gradle" } },
	{ PHP, { "php", "composer" } },
	{ GCC, { "gcc", "g++", "cc", "make", "cmake" } },
	{ DOTNET, { "dotnet" } },
	{ TERRAFORM, { "terraform" } },
	{ LUA, { "lua", "luajit" } },
	{ ELIXIR, { "elixir", "mix", "iex" } },
	{ SHELL, { "bash", "sh", "zsh" } },
};

/*
 * Sorted by significance: a Makefile often only wraps another tool. A leading '*' means a suffix.
 */
static const struct {
	const char *name;
	const char *image;
} by_file[] = {
	{ "package.json", NODE },
	{ "pyproject.toml", PYTHON },
	{ "requirements.txt", PYTHON },
	{ "Cargo.toml", RUST },
	{ "go.mod", GO },
	{ "Gemfile", RUBY },
	{ "pom.xml", JAVA },
	{ "build.gradle", JAVA },
	{ "composer.json", PHP },
	{ "mix.exs", ELIXIR },
	{ "*.csproj", DOTNET },
	{ "*.tf", TERRAFORM },
	{ "CMakeLists.txt", GCC },
	{ "Makefile", GCC },
	{ "*.lua", LUA },
	{ "Procfile", RUBY },
};

const char *detect_by_command(const char *command)
{
	for (size_t row = 0; row < COUNT_OF(by_command); row++)
		for (size_t i = 0; i < COMMANDS_MAX && by_command[row].commands[i]; i++)
			if (strcmp(by_command[row].commands[i], command) == 0)
				return by_command[row].image;
	return NULL;
}

static bool matches(const char *pattern, const char *name)
{
	size_t end_len, name_len = strlen(name);

	if (pattern[0] != '*')
		return strcmp(pattern, name) == 0;
	end_len = strlen(pattern + 1);
	return name_len > end_len && strcmp(name + name_len - end_len, pattern + 1) == 0;
}

const char *detect_by_files(char *const *names, size_t count, const char **ret_name)
{
	for (size_t row = 0; row < COUNT_OF(by_file); row++)
		for (size_t i = 0; i < count; i++)
			if (matches(by_file[row].name, names[i])) {
				*ret_name = names[i];
				return by_file[row].image;
			}
	return NULL;
}
