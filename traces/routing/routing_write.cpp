#include <fmt/format.h>

#include "base/text/output_file.h"
#include "traces/routing/routing.h"

namespace cm384::traces {

void write_routing(const std::string& path, const Routing& routing, const std::string& made) {
  OutputFile file(path);
  file.write(fmt::format("{{\"type\": \"meta\", \"model_id\": \"{}\", \"top_k\": {}, \"num_experts\": {}}}\n",
                         made, routing.top_k, routing.experts));
  for (std::int64_t row = 0; row < routing.rows(); ++row) {
    file.write(fmt::format("{{\"type\": \"route\", \"token_idx\": {}, \"layer\": 0, \"topk_ids\": [{}]}}\n",
                           row, fmt::join(routing.row(row), ", ")));
  }
  file.finish();
}

}  // namespace cm384::traces
