#pragma once
/*
 * analyse - what analysers cannot see in one file alone; `make analyse` puts this in front of each.
 *
 * err_set() and its kin always return -1, so "return err_set(...)" is a failure, and what is only
 * set on success is not looked at after it.
 */
#include "base/err.h"

#define err_set(...) (err_set(__VA_ARGS__), -1)
#define err_sys(...) (err_sys(__VA_ARGS__), -1)
#define err_wrap(...) (err_wrap(__VA_ARGS__), -1)
