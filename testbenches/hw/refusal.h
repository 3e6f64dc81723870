// What an InputError says.
#pragma once

#include <string>

#include "base/text/error.h"

namespace cm384 {

// The message with which `action` refuses; "(accepted)" where it does not.
template <class Action>
std::string refusal(Action&& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "(accepted)";
}

}  // namespace cm384
