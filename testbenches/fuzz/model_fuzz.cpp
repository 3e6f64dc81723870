// Configurations of language models, as JSON or as TOML: anything ends in a model or an InputError.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/text/error.h"
#include "hw/models/model.h"
#include "hw/models/model_sizes.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cm384;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    models::model_sizes(models::build_model(text.starts_with('{')
                                                ? models::read_config(text, "fuzz.json")
                                                : models::read_toml(text, "fuzz.toml", false),
                                            "fuzz"));
  } catch (const InputError&) {
  }
  return 0;
}
