// Times that the machine itself took, kept for what is made of them: decode steps, decode attention on a die,
// batches of prompts, and any other operators.
//
// A step of `batch` requests per NPU with `kv` cached tokens each: where steps were measured at several
// numbers of tokens, between these. Where they all have the same, that of the measured batches, plus what
// attention takes more or less at `kv`: in layers of two streams only as far as attention's half of a layer
// is the longer one.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "workloads/service/monotone.h"

namespace cm384::service {

// Scaled: within the range of points of which some are from another machine.
enum class Evidence : std::uint8_t { measured, interpolated, extrapolated, parameter, scaled };
inline constexpr std::size_t kEvidences = 5;
std::string_view to_string(Evidence evidence);

// A decode step as `run decode` gives it.
struct DecodePoint {
  int ranks = 0, batch = 0, kv = 0, mtp = 0;  // batch per NPU
  int microbatches = 2;
  int layers_alike = 0,
      layers_alone = 0;  // in two streams; dense, first and predicting ones, which overlap nothing
  double step_ms = 0, attention_half_us = 0, experts_half_us = 0;
  std::string command, model;  // fingerprint of the golden results when it was measured
  double seconds = 0;          // that the measurement took of one core of the host; 0: not known
  double layer_us = 0;         // of a layer in two streams; 0: not known
  std::string network{};       // the language model; empty: not known
  double weights_gb = 0;       // of a die; 0: not known
  double context_bytes = 0;    // of a token of a request, on all dies that have a part of it; 0: not known
  std::string date{};          // when it was measured, "2026-11-28"; empty: not known
  std::string from{};          // "scaled": from a point of another machine; empty: measured
  double error = 0;            // of a scaled one: what others of its kind were missed by; 0: not known
};
// Attention of a microbatch on its stream's cores of one die.
struct AttentionPoint {
  int sequences = 0, kv = 0, mtp = 0;
  double us = 0;
  std::string command, model;
  double seconds = 0;
  std::string date{}, from{};
  double error = 0;  // of a scaled one
};
// A batch of prompts on one instance, as `run prefill` gives it.
struct PrefillPoint {
  int ranks = 0, tokens = 0, prompt = 0;  // tokens per NPU
  int cached = 0;                         // tokens of each prompt, of `prompt`
  int microbatches = 1;
  std::string way;  // its options of attention, path and latents; empty: not known
  double latency_ms = 0;
  double attention_ms = 0;  // of that; 0: not known
  double context_ms = 0;    // of that, what goes with all tokens, cached ones too: their keys and values
  double read_ms = 0;       // of that, reading what is cached
  std::string command, model;
  double seconds = 0;
  std::string network{};  // the language model; empty: not known
  std::string date{}, from{};
  double error = 0;  // of a scaled one
};
// A row of any other study: its numbers, by name as tables have them, percentiles and intervals included.
struct OperatorPoint {
  std::string study, metric;                            // metric: the value that its curves are of
  std::vector<std::pair<std::string, std::string>> at;  // options, in their order
  std::vector<std::pair<std::string, double>> values;
  std::string command, model;
  double seconds = 0;
  std::string date{}, from{};
  double error = 0;  // of a scaled one
};

struct StepTime {
  double ms = 0;
  Evidence evidence = Evidence::measured;
  double error = 0;         // of an interpolated one, by leaving measured ones out: a share of it
  double scaled_error = 0;  // of a scaled one, besides
};

class Library {
 public:
  // "cm384-library-2", JSON with a checksum, or "cm384-library-1", which has none. Throws InputError: name:
  // what was found.
  static Library parse(std::string_view text, const std::string& name);
  // The name of a machine that comes with one, or a file.
  static Library load(const std::string& name_or_path);

  const std::string& machine() const { return machine_; }
  // Values of the machine that are not its preset's, by key; as of hw::Machine.
  const std::map<std::string, std::string>& changes() const { return changes_; }
  // "cloudmatrix384", "cloudmatrix384 with hbm.bandwidth = 2.4TB/s"
  std::string machine_text() const;
  // Whether a checksum says that it is as it was measured.
  bool checked() const { return checked_; }
  const std::vector<DecodePoint>& decode() const { return decode_; }
  const std::vector<AttentionPoint>& attention() const { return attention_; }
  const std::vector<PrefillPoint>& prefill() const { return prefill_; }
  const std::vector<OperatorPoint>& operators() const { return operators_; }
  std::string text() const;  // as parse() takes it

  void add(DecodePoint point) { decode_.push_back(std::move(point)); }
  void add(AttentionPoint point) { attention_.push_back(std::move(point)); }
  void add(PrefillPoint point) { prefill_.push_back(std::move(point)); }
  void add(OperatorPoint point) { operators_.push_back(std::move(point)); }
  explicit Library(std::string machine, std::map<std::string, std::string> changes = {})
      : machine_(std::move(machine)), changes_(std::move(changes)) {}

 private:
  std::string machine_;
  std::map<std::string, std::string> changes_;
  bool checked_ = false;
  std::vector<DecodePoint> decode_;
  std::vector<AttentionPoint> attention_;
  std::vector<PrefillPoint> prefill_;
  std::vector<OperatorPoint> operators_;
};

// Steps of one deployment, out of a library.
class DecodeSteps {
 public:
  // Throws InputError where the library has no step of so many ranks and predicted tokens.
  DecodeSteps(const Library& library, int ranks, int mtp, int dies_of_npu = 2);

  // `batch` requests per NPU, `kv` tokens of each.
  StepTime at(double batch, double kv) const;
  // Of that step, a layer in two streams, us. Throws InputError where the library has no layers.
  double layer_us(double batch, double kv) const;
  int least_batch() const;
  double least_kv() const;
  double leave_one_out() const { return step_error_; }

 private:
  struct Row {  // attention of one number of sequences
    double sequences;
    MonotoneCurve us;
  };
  double attention_us(double sequences, double kv, bool& inside) const;
  // What `kv` tokens add to attention of a microbatch, us, and to the longer half of a layer.
  struct More {
    double attention = 0, half = 0;
    bool inside = true;
  };
  More more_at(double batch, double kv) const;
  // The time as if all points were measured.
  StepTime between_points(double batch, double kv) const;

  // Measured steps of one number of tokens, by batch.
  struct Steps {
    double kv;
    MonotoneCurve step, layer, attention_half, experts_half;
    double error;  // of the step, by leaving measured ones out
  };
  static std::vector<Steps> by_tokens(const Library& library, int ranks, int mtp);
  // Between the measured numbers of tokens.
  double between(double batch, double kv, MonotoneCurve Steps::*of) const;

  std::vector<Steps> steps_;  // by rising kv
  int dies_of_npu_, microbatches_ = 2, layers_alike_ = 0, layers_alone_ = 0;
  bool layers_known_ = true;
  double step_error_ = 0, attention_error_ = 0;
  std::vector<Row> rows_;
  // Of steps that are scaled, their errors by batch and tokens; the worst of attention's scaled points, -1:
  // it has none.
  std::map<std::pair<int, int>, double> scaled_;
  double scaled_attention_ = -1;
};

}  // namespace cm384::service
