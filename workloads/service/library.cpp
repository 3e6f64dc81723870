#include "workloads/service/library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text/embedded_text.h"
#include "base/text/error.h"
#include "base/text/input_file.h"
#include "base/text/json.h"
#include "base/text/sealed_json.h"

namespace cm384::service {
namespace {

constexpr std::string_view kFormat = "cm384-library-2", kUnchecked = "cm384-library-1";

// The fields of a point, both ways; of those that may be missing, 0 and an empty text are not written.
enum class Needed : bool { no, yes };

template <class Point, class Visit>
void for_each_field(Point& point, Visit&& visit) {
  constexpr auto kYes = Needed::yes, kNo = Needed::no;
  if constexpr (requires { point.step_ms; }) {
    visit("ranks", point.ranks, kYes);
    visit("batch", point.batch, kYes);
    visit("kv", point.kv, kYes);
    visit("mtp", point.mtp, kYes);
    visit("microbatches", point.microbatches, kYes);
    visit("layers_alike", point.layers_alike, kYes);
    visit("layers_alone", point.layers_alone, kYes);
    visit("step_ms", point.step_ms, kYes);
    visit("layer_us", point.layer_us, kNo);
    visit("attention_half_us", point.attention_half_us, kYes);
    visit("experts_half_us", point.experts_half_us, kYes);
    visit("network", point.network, kNo);
    visit("weights_gb", point.weights_gb, kNo);
    visit("context_bytes", point.context_bytes, kNo);
  } else if constexpr (requires { point.sequences; }) {
    visit("sequences", point.sequences, kYes);
    visit("kv", point.kv, kYes);
    visit("mtp", point.mtp, kYes);
    visit("us", point.us, kYes);
  } else if constexpr (requires { point.latency_ms; }) {
    visit("ranks", point.ranks, kYes);
    visit("tokens", point.tokens, kYes);
    visit("prompt", point.prompt, kYes);
    visit("cached", point.cached, kNo);
    visit("microbatches", point.microbatches, kNo);
    visit("way", point.way, kNo);
    visit("latency_ms", point.latency_ms, kYes);
    visit("attention_ms", point.attention_ms, kNo);
    visit("context_ms", point.context_ms, kNo);
    visit("read_ms", point.read_ms, kNo);
    visit("network", point.network, kNo);
  } else {
    visit("study", point.study, kYes);
    visit("at", point.at, kYes);
    visit("metric", point.metric, kYes);
    visit("values", point.values, kYes);
  }
  visit("seconds", point.seconds, kNo);
  visit("date", point.date, kNo);
  visit("from", point.from, kNo);
  visit("error", point.error, kNo);
  visit("command", point.command, kYes);
  visit("model", point.model, kYes);
}

class LibraryReader {
 public:
  LibraryReader(std::string_view text, const std::string& name)
      : name_(name), json_(Json::parse(text, nullptr, false)) {
    const Json format = json_.is_object() ? json_.value("format", Json()) : Json();
    if ((format != kFormat && format != kUnchecked) || !json_.contains("machine") ||
        !json_["machine"].is_string())
      throw InputError(fmt::format("{}: is not a library of measured times ({})", name, kFormat));
    if (!has_good_checksum(json_, name) && format == kFormat)
      throw InputError(fmt::format("{}: has no checksum; allowed without one: {}", name, kUnchecked));
  }
  bool checked() const { return json_.contains(kChecksum); }
  std::string machine() const { return json_["machine"].get<std::string>(); }
  std::map<std::string, std::string> changes() const {
    std::map<std::string, std::string> changes;
    const Json found = json_.value("changes", Json::object());
    for (const auto& [key, value] : found.items()) {
      if (!value.is_string()) throw InputError(fmt::format("{}: changes: {}: is not a string", name_, key));
      changes[key] = value.get<std::string>();
    }
    return changes;
  }

  template <class Point>
  void points(const char* kind, Library& library) const {
    const auto list = json_.find(kind);
    if (list == json_.end()) return;
    if (!list->is_array()) throw InputError(fmt::format("{}: {}: is not a list", name_, kind));
    for (std::size_t k = 0; k < list->size(); ++k) {
      Point point;
      for_each_field(point, [&](const char* field, auto& value, Needed needed) {
        read_field((*list)[k], {kind, k, field}, value, needed);
      });
      library.add(std::move(point));
    }
  }

 private:
  struct Place {
    const char* kind;
    std::size_t k;
    const char* field;
  };
  [[noreturn]] void refuse(const Place& place, std::string_view what) const {
    throw InputError(fmt::format("{}: {}[{}]: {}: {}", name_, place.kind, place.k, place.field, what));
  }
  template <class T>
  void read_field(const Json& point, const Place& place, T& value, Needed needed) const {
    const auto found = point.is_object() ? point.find(place.field) : point.end();
    if (point.is_object() && found != point.end()) return read(*found, place, value);
    if (needed == Needed::yes) refuse(place, "is missing");
  }
  template <class T>
  void read(const Json& json, const Place& place, std::vector<std::pair<std::string, T>>& values) const {
    if (!json.is_object()) refuse(place, "allowed: names with their values");
    for (const auto& [name, value] : json.items()) {
      if (std::is_same_v<T, std::string> ? !value.is_string() : !value.is_number())
        refuse(place, "allowed: names with their values");
      values.emplace_back(name, value.template get<T>());
    }
  }
  void read(const Json& json, const Place& place, std::string& value) const {
    if (!json.is_string()) refuse(place, "allowed: a text");
    value = json.get<std::string>();
  }
  template <class T>
  requires std::is_arithmetic_v<T>
  void read(const Json& json, const Place& place, T& value) const {
    if (!json.is_number() || !(json.get<double>() >= 0 && json.get<double>() < 1e18) ||
        (std::is_same_v<T, int> && (!json.is_number_integer() || json.get<double>() >= 1e9)))
      refuse(place, "allowed: a number, 0 or more");
    value = json.get<T>();
  }

  std::string name_;
  Json json_;
};

template <class T>
Json to_json(const T& value) {
  return value;
}
template <class T>
Json to_json(const std::vector<std::pair<std::string, T>>& values) {
  Json json = Json::object();
  for (const auto& [name, value] : values) json[name] = value;
  return json;
}

// A line for each point.
template <class Point>
std::string list_text(const char* kind, const std::vector<Point>& points) {
  std::vector<std::string> lines;
  for (const Point& point : points) {
    Json one = Json::object();
    for_each_field(point, [&](const char* field, const auto& value, Needed needed) {
      if (needed == Needed::no && value == std::remove_cvref_t<decltype(value)>{}) return;
      one[field] = to_json(value);
    });
    lines.push_back("\n  " + one.dump());
  }
  return fmt::format(" \"{}\": [{}{}]", kind, fmt::join(lines, ","), lines.empty() ? "" : "\n ");
}

// By x, the last of equals.
using Points = std::vector<std::pair<double, double>>;
Points by_x(Points points) {
  std::ranges::stable_sort(points, {}, &std::pair<double, double>::first);
  const auto equal = [](const auto& one, const auto& other) { return one.first == other.first; };
  points.erase(std::unique(points.begin(), points.end(), equal), points.end());
  return points;
}
MonotoneCurve curve_of(Points points) {
  return MonotoneCurve(by_x(std::move(points)));
}

std::vector<DecodePoint> steps_of(const Library& library, int ranks, int mtp) {
  std::vector<DecodePoint> steps;
  std::set<std::string> others;
  for (const DecodePoint& point : library.decode()) {
    if (point.ranks == ranks && point.mtp == mtp) {
      steps.push_back(point);
    } else {
      others.insert(fmt::format("{} with {}", point.ranks, point.mtp));
    }
  }
  if (steps.empty())
    throw InputError(
        fmt::format("library of {}: no decode step of {} ranks with {} predicted tokens; it has: {}",
                    library.machine(), ranks, mtp, fmt::join(others, ", ")));
  return steps;
}

template <class Member>
MonotoneCurve by_batch(const std::vector<DecodePoint>& steps, Member member) {
  Points points;
  for (const DecodePoint& step : steps) points.emplace_back(step.batch, step.*member);
  return curve_of(std::move(points));
}

}  // namespace

std::string_view to_string(Evidence evidence) {
  constexpr std::array<std::string_view, kEvidences> kNames{"MEASURED", "INTERPOLATED", "EXTRAPOLATED",
                                                            "PARAMETER", "SCALED"};
  return kNames[static_cast<std::size_t>(evidence)];
}

Library Library::parse(std::string_view text, const std::string& name) {
  const LibraryReader reader(text, name);
  Library library(reader.machine(), reader.changes());
  library.checked_ = reader.checked();
  reader.points<DecodePoint>("decode", library);
  reader.points<AttentionPoint>("attention", library);
  reader.points<PrefillPoint>("prefill", library);
  reader.points<OperatorPoint>("operators", library);
  return library;
}

Library Library::load(const std::string& name_or_path) {
  for (const hw::EmbeddedText& known : hw::embedded_library())
    if (known.name == name_or_path) return parse(known.text, std::string(known.name) + ".json");
  return parse(read_input(name_or_path), name_or_path);
}

std::string Library::machine_text() const {
  std::vector<std::string> changes;
  for (const auto& [key, value] : changes_) changes.push_back(key + " = " + value);
  return changes.empty() ? machine_ : fmt::format("{} with {}", machine_, fmt::join(changes, ", "));
}

std::string Library::text() const {
  std::string machine = Json(machine_).dump();
  if (!changes_.empty()) machine += ",\n \"changes\": " + Json(changes_).dump();
  const std::string all =
      fmt::format("{{\n \"format\": \"{}\",\n \"machine\": {},\n{},\n{},\n{},\n{}", kFormat, machine,
                  list_text("decode", decode_), list_text("attention", attention_),
                  list_text("prefill", prefill_), list_text("operators", operators_));
  return fmt::format("{},\n \"{}\": \"{}\"\n}}\n", all, kChecksum, checksum_of(Json::parse(all + "}")));
}

std::vector<DecodeSteps::Steps> DecodeSteps::by_tokens(const Library& library, int ranks, int mtp) {
  std::map<int, std::vector<DecodePoint>> measured;
  for (const DecodePoint& step : steps_of(library, ranks, mtp)) measured[step.kv].push_back(step);
  std::vector<Steps> steps;
  for (const auto& [kv, points] : measured) {
    Points by_size;
    for (const DecodePoint& point : points) by_size.emplace_back(point.batch, point.step_ms);
    steps.push_back(
        {static_cast<double>(kv), by_batch(points, &DecodePoint::step_ms),
         by_batch(points, &DecodePoint::layer_us), by_batch(points, &DecodePoint::attention_half_us),
         by_batch(points, &DecodePoint::experts_half_us), leave_one_out_error(by_x(std::move(by_size)))});
  }
  return steps;
}

DecodeSteps::DecodeSteps(const Library& library, int ranks, int mtp, int dies_of_npu)
    : steps_(by_tokens(library, ranks, mtp)), dies_of_npu_(dies_of_npu) {
  const std::vector<DecodePoint> steps = steps_of(library, ranks, mtp);
  microbatches_ = steps.front().microbatches;
  layers_alike_ = steps.front().layers_alike;
  layers_alone_ = steps.front().layers_alone;
  for (const DecodePoint& step : steps) {
    layers_known_ = layers_known_ && step.layer_us > 0;
    if (!step.from.empty()) scaled_[{step.batch, step.kv}] = step.error;
  }
  for (const Steps& at : steps_) step_error_ = std::max(step_error_, at.error);
  if (steps_.size() > 1) {
    // Over tokens, at every batch that was measured at all of them.
    for (const DecodePoint& step : steps) {
      Points over;
      for (const Steps& at : steps_)
        if (at.step.is_point(step.batch)) over.emplace_back(at.kv, at.step(step.batch));
      if (over.size() > 1) step_error_ = std::max(step_error_, leave_one_out_error(over));
    }
    return;
  }
  std::map<int, Points> attention;
  for (const AttentionPoint& point : library.attention()) {
    if (point.mtp != mtp) continue;
    attention[point.sequences].emplace_back(point.kv, point.us);
    if (!point.from.empty()) scaled_attention_ = std::max(scaled_attention_, point.error);
  }
  for (auto& [sequences, points] : attention) {
    points = by_x(std::move(points));
    attention_error_ = std::max(attention_error_, leave_one_out_error(points));
    rows_.push_back({static_cast<double>(sequences), MonotoneCurve(points)});
  }
}

int DecodeSteps::least_batch() const {
  double least = 0;
  for (const Steps& at : steps_) least = std::max(least, at.step.low());
  return static_cast<int>(least);
}

double DecodeSteps::least_kv() const {
  double least = steps_.front().kv;
  for (const Row& row : rows_) least = std::min(least, row.us.low());
  return least;
}

double DecodeSteps::between(double batch, double kv, MonotoneCurve Steps::*of) const {
  Points points;
  for (const Steps& at : steps_) points.emplace_back(at.kv, (at.*of)(batch));
  return MonotoneCurve(points)(kv);
}

double DecodeSteps::attention_us(double sequences, double kv, bool& inside) const {
  Points points;
  for (const Row& row : rows_) points.emplace_back(row.sequences, row.us(kv));
  const MonotoneCurve curve(points);
  inside = inside && curve.has(sequences);
  // The tokens must be within what was measured with at least as many sequences.
  const auto above = std::ranges::find_if(
      rows_, [&](const Row& row) { return row.sequences >= std::min(sequences, curve.high()); });
  inside = inside && above->us.has(kv);
  return curve(sequences);
}

DecodeSteps::More DecodeSteps::more_at(double batch, double kv) const {
  const Steps& measured = steps_.front();
  More more;
  const double sequences = batch / dies_of_npu_ / microbatches_;
  more.attention =
      attention_us(sequences, kv, more.inside) - attention_us(sequences, measured.kv, more.inside);
  const double attention = measured.attention_half(batch), experts = measured.experts_half(batch);
  // One stream does both halves.
  more.half = microbatches_ == 1
                  ? more.attention
                  : std::max(attention + more.attention, experts) - std::max(attention, experts);
  return more;
}

double DecodeSteps::layer_us(double batch, double kv) const {
  if (!layers_known_)
    throw InputError("the library has no times of layers; `cm384 library measure` makes one that has");
  if (steps_.size() > 1) return between(batch, kv, &Steps::layer);
  const Steps& measured = steps_.front();
  if (kv == measured.kv || rows_.empty()) return measured.layer(batch);
  return measured.layer(batch) + microbatches_ * more_at(batch, kv).half;
}

StepTime DecodeSteps::at(double batch, double kv) const {
  StepTime time = between_points(batch, kv);
  if (time.evidence == Evidence::extrapolated) return time;
  const auto point = scaled_.find({static_cast<int>(batch), static_cast<int>(kv)});
  if (time.evidence == Evidence::measured) {
    if (point == scaled_.end()) return time;
    return {time.ms, Evidence::scaled, 0, point->second};
  }
  const bool attention = kv != steps_.front().kv && scaled_attention_ >= 0;
  if (scaled_.empty() && !attention) return time;
  time.evidence = Evidence::scaled;
  for (const auto& [at, error] : scaled_) time.scaled_error = std::max(time.scaled_error, error);
  if (attention) time.scaled_error = std::max(time.scaled_error, scaled_attention_);
  return time;
}

StepTime DecodeSteps::between_points(double batch, double kv) const {
  if (steps_.size() > 1) {
    // The two numbers of tokens beside `kv` must have the batch.
    const auto above =
        std::ranges::find_if(steps_, [&](const Steps& at) { return at.kv >= kv || &at == &steps_.back(); });
    const Steps& upper = *above;
    const Steps& lower = above == steps_.begin() || upper.kv == kv ? upper : *(above - 1);
    StepTime time{between(batch, kv, &Steps::step)};
    if (kv < steps_.front().kv || kv > steps_.back().kv || !upper.step.has(batch) || !lower.step.has(batch))
      time.evidence = Evidence::extrapolated;
    else if (upper.kv != kv || !upper.step.is_point(batch))
      time = {time.ms, Evidence::interpolated, step_error_};
    return time;
  }
  const Steps& measured = steps_.front();
  StepTime time{measured.step(batch)};
  if (!measured.step.has(batch))
    time.evidence = Evidence::extrapolated;
  else if (!measured.step.is_point(batch))
    time = {time.ms, Evidence::interpolated, step_error_};
  if (kv == measured.kv) return time;
  if (rows_.empty()) return {time.ms, Evidence::extrapolated, 0};
  const More more = more_at(batch, kv);
  time.ms += microbatches_ * (layers_alike_ * more.half + layers_alone_ * more.attention) * 1e-3;
  if (!more.inside) {
    time.evidence = Evidence::extrapolated;
  } else if (time.evidence == Evidence::measured) {
    time.evidence = Evidence::interpolated;
  }
  time.error = std::max(time.error, attention_error_);
  return time;
}

}  // namespace cm384::service
