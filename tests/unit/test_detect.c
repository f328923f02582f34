/* The image that is detected for a command or a project. */
#include "policy/detect.h"
#include "unit.h"

static void assert_image(const char *image, const char *expected)
{
	if (!expected)
		assert_null(image);
	else
		assert_string_equal(image, expected);
}

static void a_command_in_the_table_names_its_image(void **state)
{
	static const char *const rows[][2] = {
		{ "python", "python:3.12-alpine" },
		{ "pytest", "python:3.12-alpine" },
		{ "uv", "python:3.12-alpine" },
		{ "npx", "node:22-alpine" },
		{ "bun", "node:22-alpine" },
		{ "rustc", "rust:1.85-alpine" },
		{ "gofmt", "golang:1.23-alpine" },
		{ "gem", "ruby:3.3-alpine" },
		{ "mvn", "eclipse-temurin:21-alpine" },
		{ "composer", "php:8.3-alpine" },
		{ "cmake", "gcc:14-bookworm" },
		{ "g++", "gcc:14-bookworm" },
		{ "dotnet", "mcr.microsoft.com/dotnet/sdk:8.0" },
		{ "terraform", "hashicorp/terraform:1.10" },
		{ "luajit", "nickblah/lua:5.4-alpine" },
		{ "iex", "elixir:1.16-alpine" },
		{ "zsh", "alpine:3.20" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_image(detect_by_command(rows[i][0]), rows[i][1]);
}

static void other_commands_and_paths_name_none(void **state)
{
	(void)state;
	assert_image(detect_by_command("true"), NULL);
	assert_image(detect_by_command("python3.11"), NULL);
	assert_image(detect_by_command("/usr/bin/python3"), NULL);
	assert_image(detect_by_command("Python"), NULL);
	assert_image(detect_by_command(""), NULL);
}

static const char *by_file(const char *name)
{
	char *names[] = { "README", (char *)name, "LICENSE" };
	const char *decider = NULL;

	return detect_by_files(names, 3, &decider);
}

static void a_file_of_a_project_names_its_image(void **state)
{
	static const char *const rows[][2] = {
		{ "package.json", "node:22-alpine" },
		{ "pyproject.toml", "python:3.12-alpine" },
		{ "requirements.txt", "python:3.12-alpine" },
		{ "Cargo.toml", "rust:1.85-alpine" },
		{ "go.mod", "golang:1.23-alpine" },
		{ "Gemfile", "ruby:3.3-alpine" },
		{ "pom.xml", "eclipse-temurin:21-alpine" },
		{ "build.gradle", "eclipse-temurin:21-alpine" },
		{ "composer.json", "php:8.3-alpine" },
		{ "CMakeLists.txt", "gcc:14-bookworm" },
		{ "Makefile", "gcc:14-bookworm" },
		{ "mix.exs", "elixir:1.16-alpine" },
		{ "app.csproj", "mcr.microsoft.com/dotnet/sdk:8.0" },
		{ "main.tf", "hashicorp/terraform:1.10" },
		{ "init.lua", "nickblah/lua:5.4-alpine" },
		{ "Procfile", "ruby:3.3-alpine" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_image(by_file(rows[i][0]), rows[i][1]);
	assert_image(by_file(".tf"), NULL);
	assert_image(by_file("xpackage.json"), NULL);
	assert_image(by_file("package.json.bak"), NULL);
}

static void what_says_most_wins_whatever_comes_first(void **state)
{
	char *names[] = { "x.lua", "Makefile", "package.json" };
	const char *decider = NULL;

	(void)state;
	assert_string_equal(detect_by_files(names, 3, &decider), "node:22-alpine");
	assert_string_equal(decider, "package.json");
	assert_string_equal(detect_by_files(names, 2, &decider), "gcc:14-bookworm");
	assert_null(detect_by_files(names, 0, &decider));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_command_in_the_table_names_its_image),
		cmocka_unit_test(other_commands_and_paths_name_none),
		cmocka_unit_test(a_file_of_a_project_names_its_image),
		cmocka_unit_test(what_says_most_wins_whatever_comes_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
