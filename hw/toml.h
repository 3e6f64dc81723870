// toml++, safe for foreign input. Version 3.3 asserts what a file can break, such as "[[[" where a key should
// begin, and with NDEBUG even assumes it, though the code after it handles the error. Without either it does.
#pragma once

#ifdef NDEBUG
#define CM384_TOML_NDEBUG
#undef NDEBUG
#endif
#define TOML_ASSERT(expression) static_assert(true)
#include <toml++/toml.h>
#ifdef CM384_TOML_NDEBUG
#undef CM384_TOML_NDEBUG
#define NDEBUG
#endif
