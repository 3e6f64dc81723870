// Measures what a decode step is made of, or reads it from a file.
#pragma once

#include "workloads/layer/decode.h"

namespace cm384::studies {

// Empty: interrupted. Throws InputError for a file of another machine or of other options.
std::optional<DecodeParts> decode_parts(const StudyContext& context, const DecodeOptions& options,
                                        StudyResult& result);

}  // namespace cm384::studies
