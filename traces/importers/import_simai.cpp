#include <fmt/format.h>

#include <array>
#include <map>
#include <numeric>
#include <optional>

#include "base/text/error.h"
#include "traces/import.h"
#include "traces/importers/imported_ranks.h"
#include "traces/importers/words.h"

namespace cm384::traces {
namespace {

constexpr std::int64_t kMostSimAiRanks = 65'535, kMostSimAiNs = std::int64_t{1} << 50, kMostLayers = 1 << 20;
constexpr std::size_t kLayerWords = 12;

// Ranks as Megatron orders them: tensor parallel ones side by side, then expert parallel, data parallel and
// the stages of a pipeline.
struct Shape {
  std::int64_t all = 1, tensor = 1, expert = 1, stages = 1;
  std::int64_t of_stage() const { return all / stages; }
};

enum class Group : std::uint8_t { tensor, expert, data, data_of_experts };

struct Step {
  std::int64_t ns = 0;
  std::optional<CollectiveKind> kind;
  Group group = Group::tensor;
  std::int64_t bytes = 0;
};
struct Layer {
  std::array<Step, 3> steps;  // forward, input's gradient, weights' gradient
  std::int64_t update_ns = 0;
  std::string where;
};

class SimAiImport {
 public:
  SimAiImport(const std::string& path, const ImportOptions& options) : lines_(path), path_(path) {
    read_header(static_cast<std::int64_t>(options.onto.size()));
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(shape_.all));
    std::iota(numbers.begin(), numbers.end(), 0);
    ranks_.emplace(std::move(numbers), path, options);
    if (!lines_.next()) lines_.fail("layers: their number is missing");
    const std::int64_t layers = lines_.integer(0, "layers", 1, kMostLayers);
    while (lines_.next()) layers_.push_back(layer());
    if (static_cast<std::int64_t>(layers_.size()) != layers)
      lines_.fail(fmt::format("layers: {} announced, {} there", layers, layers_.size()));
  }

  ImportResult write(TrafficSink& sink) {
    const auto count = static_cast<int>(ranks_->count());
    for (int rank = 0; rank < count; ++rank) at_.push_back(graph_.add(ranks_->point(rank), path_));
    std::vector<std::vector<std::uint64_t>> updated;  // by layer: of each rank
    for (const Layer& layer : layers_) {
      compute(at_, layer.steps[0].ns, layer.where);
      add_collectives(at_, layer.steps[0], layer.where);
    }
    for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
      compute(at_, layer->steps[2].ns, layer->where);
      std::vector<std::uint64_t> beside = at_;
      add_collectives(beside, layer->steps[2], layer->where);
      if (layer->update_ns != 0) compute(beside, layer->update_ns, layer->where);
      if (beside != at_) updated.push_back(std::move(beside));
      compute(at_, layer->steps[1].ns, layer->where);
      add_collectives(at_, layer->steps[1], layer->where);
    }
    ImportResult result = ranks_->write(graph_, sink);
    result.notes.emplace_back(
        "times of layers are taken as ns, sizes as bytes that a rank puts in; one iteration");
    if (shape_.stages > 1)
      result.not_taken.push_back(fmt::format("a pipeline: {} stages run all layers at once", shape_.stages));
    for (const auto& [name, value] : ignored_) result.not_taken.push_back(fmt::format("{}: {}", name, value));
    return result;
  }

 private:
  // `onto`: how many dies are named for the ranks.
  void read_header(std::int64_t onto) {
    if (!lines_.next()) lines_.fail("header: the file is empty");
    const auto& words = lines_.words();
    if (!words[0].starts_with("HYBRID_TRANSFORMER") && words[0] != "MICRO")
      lines_.fail(fmt::format("header: '{}'; allowed: HYBRID_TRANSFORMER.., MICRO", words[0].substr(0, 60)));
    micro_ = words[0] == "MICRO";
    shape_.all = 0;
    for (std::size_t n = 1; n < words.size(); n += 2) {
      const std::string_view name = words[n];
      const std::int64_t value = lines_.integer(n + 1, name, 0, INT32_MAX);
      if (name == "model_parallel_NPU_group:") {
        shape_.tensor = value;
      } else if (name == "ep:") {
        shape_.expert = value;
      } else if (name == "pp:") {
        shape_.stages = value;
      } else if (name == "all_gpus:") {
        shape_.all = value;
      } else if (name.starts_with("checkpoint")) {
        if (value != 0) ignored_[std::string(name.substr(0, name.size() - 1))] = value;
      } else if (name == "ga:") {
        if (value > 1) ignored_["ga, of whose micro-batches one is run"] = value;
      } else if (name == "pp_comm:" || name == "pp_comm") {
        if (value != 0) ignored_["pp_comm"] = value;
      } else if (name != "vpp:" && name != "dp:") {
        lines_.fail(
            fmt::format("header: '{}'; allowed: model_parallel_NPU_group:, ep:, pp:, vpp:, ga:, "
                        "dp:, pp_comm:, all_gpus:, checkpoints:, checkpoint_initiates:",
                        name.substr(0, 60)));
      }
    }
    // The simulator takes as many as its network has.
    if (shape_.all == 0) shape_.all = onto;
    if (shape_.all == 0)
      lines_.fail("header: all_gpus is missing; allowed: --onto with a die for each rank instead");
    const std::int64_t block = shape_.tensor * shape_.expert * shape_.stages;
    if (shape_.all < 1 || shape_.all > kMostSimAiRanks || block < 1 || shape_.all % block != 0)
      lines_.fail(fmt::format("header: all_gpus {}: allowed: a multiple of {}, up to {}", shape_.all, block,
                              kMostSimAiRanks));
  }

  Layer layer() {
    if (lines_.words().size() != kLayerWords)
      lines_.fail(fmt::format("layer: {} words; allowed: {}", lines_.words().size(), kLayerWords));
    lines_.integer(1, "dependency", -1, INT32_MAX);
    Layer layer;
    for (std::size_t k = 0; k < 3; ++k) {
      layer.steps[k] = step(2 + 3 * k, k == 2);
    }
    layer.update_ns = lines_.integer(11, "update time", 0, kMostSimAiNs);
    layer.where = lines_.where();
    return layer;
  }

  Step step(std::size_t at, bool of_weights) {
    Step step;
    step.ns = lines_.integer(at, "time", 0, kMostSimAiNs);
    step.bytes = lines_.integer(at + 2, "size", 0, kMostImportedBytes);
    std::string_view type = lines_.word(at + 1, "communication");
    if (type == "NONE") return step;
    step.group = of_weights ? Group::data : Group::tensor;
    const auto ends = [&](std::string_view suffix, Group group) {
      if (!type.ends_with(suffix)) return false;
      type.remove_suffix(suffix.size());
      step.group = group;
      return true;
    };
    if (!ends("_DP_EP", Group::data_of_experts) && !ends("_EP", Group::expert)) ends("_DP", Group::data);
    const std::pair<std::string_view, CollectiveKind> kinds[] = {
        {"ALLREDUCE", CollectiveKind::all_reduce},
        {"ALLGATHER", CollectiveKind::all_gather},
        {"REDUCESCATTER", CollectiveKind::reduce_scatter},
        {"ALLTOALL", CollectiveKind::all_to_all}};
    for (const auto& [name, kind] : kinds) {
      if (type == name) step.kind = kind;
    }
    if (!step.kind)
      lines_.fail(
          fmt::format("communication: '{}'; allowed: NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER, "
                      "ALLTOALL, with _EP, _DP or _DP_EP behind it",
                      lines_.word(at + 1, "communication").substr(0, 60)));
    return step;
  }

  void compute(std::vector<std::uint64_t>& at, std::int64_t ns, const std::string& where) {
    for (std::size_t rank = 0; rank < at.size(); ++rank) {
      const std::uint64_t record =
          graph_.add(ranks_->compute(static_cast<int>(rank), Time{ns * 1000}), where);
      graph_.wait(record, {at[rank], TrafficDependency::Kind::completion, {}});
      at[rank] = record;
    }
  }

  // Which of its groups a rank is of; members come in the order of ranks. Of a MICRO workload all are one.
  std::int64_t group_of(Group group, std::int64_t rank) const {
    const std::int64_t stage = rank / shape_.of_stage(), place = rank % shape_.of_stage(),
                       tensor = place % shape_.tensor, block = shape_.tensor * shape_.expert;
    if (micro_) return 0;
    switch (group) {
      case Group::tensor:
        return rank / shape_.tensor;
      case Group::expert:
        return (stage * shape_.of_stage() + place / block) * shape_.tensor + tensor;
      case Group::data:
        return stage * shape_.tensor + tensor;
      case Group::data_of_experts:
        break;
    }
    return stage * block + place % block;
  }

  void add_collectives(std::vector<std::uint64_t>& at, const Step& step, const std::string& where) {
    if (!step.kind || step.bytes == 0) return;
    std::map<std::int64_t, ImportedRanks::Collective> groups;
    for (std::size_t rank = 0; rank < at.size(); ++rank) {
      ImportedRanks::Collective& one = groups[group_of(step.group, static_cast<std::int64_t>(rank))];
      one.kind = *step.kind;
      one.where = where;
      one.members.push_back(static_cast<int>(rank));
      one.inputs.push_back(step.bytes);
      one.ready.push_back(at[rank]);
      at[rank] = graph_.add(ranks_->point(static_cast<int>(rank)), where);
      one.end.push_back(at[rank]);
    }
    for (const auto& [group, one] : groups) ranks_->add(graph_, one);
  }

  WordLines lines_;
  std::string path_;
  Shape shape_;
  bool micro_ = false;
  std::vector<Layer> layers_;
  std::optional<ImportedRanks> ranks_;
  RecordGraph graph_;
  std::vector<std::uint64_t> at_;  // how far each rank is
  std::map<std::string, std::int64_t> ignored_;
};

}  // namespace

ImportResult import_simai(const std::string& path, const ImportOptions& options, TrafficSink& sink) {
  return SimAiImport(path, options).write(sink);
}

}  // namespace cm384::traces
