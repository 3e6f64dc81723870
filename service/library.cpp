#include "service/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>

#include "hw/embedded_text.h"
#include "hw/error.h"
#include "hw/input_file.h"
#include "hw/json.h"

namespace cm384::service {
namespace {

constexpr std::string_view kFormat = "cm384-library-1";

// A field of a point, both ways.
template <class Point, class Visit>
void each_field(Point& point, Visit&& visit) requires requires {
  point.step_ms;
}
{
  visit("ranks", point.ranks);
  visit("batch", point.batch);
  visit("kv", point.kv);
  visit("mtp", point.mtp);
  visit("microbatches", point.microbatches);
  visit("layers_alike", point.layers_alike);
  visit("layers_alone", point.layers_alone);
  visit("step_ms", point.step_ms);
  visit("attention_half_us", point.attention_half_us);
  visit("experts_half_us", point.experts_half_us);
  visit("command", point.command);
  visit("model", point.model);
}
template <class Point, class Visit>
void each_field(Point& point, Visit&& visit) requires requires {
  point.sequences;
}
{
  visit("sequences", point.sequences);
  visit("kv", point.kv);
  visit("mtp", point.mtp);
  visit("us", point.us);
  visit("command", point.command);
  visit("model", point.model);
}
template <class Point, class Visit>
void each_field(Point& point, Visit&& visit) requires requires {
  point.latency_ms;
}
{
  visit("ranks", point.ranks);
  visit("tokens", point.tokens);
  visit("prompt", point.prompt);
  visit("latency_ms", point.latency_ms);
  visit("command", point.command);
  visit("model", point.model);
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& name)
      : name_(name), json_(Json::parse(text, nullptr, false)) {
    if (!json_.is_object() || json_.value("format", Json()) != kFormat || !json_.contains("machine") ||
        !json_["machine"].is_string())
      throw InputError(fmt::format("{}: is no library of measured times ({})", name, kFormat));
  }
  std::string machine() const { return json_["machine"].get<std::string>(); }

  template <class Point>
  void points(const char* kind, Library& library) const {
    const auto list = json_.find(kind);
    if (list == json_.end()) return;
    if (!list->is_array()) throw InputError(fmt::format("{}: {}: is no list", name_, kind));
    for (std::size_t k = 0; k < list->size(); ++k) {
      Point point;
      each_field(point, [&](const char* field, auto& value) { take((*list)[k], kind, k, field, value); });
      library.add(std::move(point));
    }
  }

 private:
  template <class T>
  void take(const Json& point, const char* kind, std::size_t k, const char* field, T& value) const {
    const auto found = point.is_object() ? point.find(field) : point.end();
    const auto refuse = [&](const char* what) {
      throw InputError(fmt::format("{}: {}[{}]: {}: {}", name_, kind, k, field, what));
    };
    if (!point.is_object() || found == point.end()) refuse("is missing");
    if constexpr (std::is_same_v<T, std::string>) {
      if (!found->is_string()) refuse("allowed: a text");
    } else {
      if (!found->is_number() ||
          !(found->template get<double>() >= 0 && found->template get<double>() < 1e9) ||
          (std::is_same_v<T, int> && !found->is_number_integer()))
        refuse("allowed: a number, 0 or more");
    }
    value = found->template get<T>();
  }

  std::string name_;
  Json json_;
};

template <class Point>
Json list_of(const std::vector<Point>& points) {
  Json list = Json::array();
  for (const Point& point : points) {
    Json& one = list.emplace_back(Json::object());
    each_field(point, [&](const char* field, const auto& value) { one[field] = value; });
  }
  return list;
}

// By x, the last of equals.
using Points = std::vector<std::pair<double, double>>;
MonotoneCurve curve_of(Points points) {
  std::ranges::stable_sort(points, {}, &std::pair<double, double>::first);
  const auto equal = [](const auto& one, const auto& other) { return one.first == other.first; };
  points.erase(std::unique(points.begin(), points.end(), equal), points.end());
  return MonotoneCurve(points);
}

std::vector<DecodePoint> steps_of(const Library& library, int ranks, int mtp) {
  std::vector<DecodePoint> steps;
  std::vector<std::string> others;
  for (const DecodePoint& point : library.decode()) {
    if (point.ranks == ranks && point.mtp == mtp && (steps.empty() || point.kv == steps.front().kv)) {
      steps.push_back(point);
    } else {
      others.push_back(fmt::format("{} with {}", point.ranks, point.mtp));
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
  constexpr std::array<std::string_view, 4> kNames{"MEASURED", "INTERPOLATED", "EXTRAPOLATED", "PARAMETER"};
  return kNames[static_cast<std::size_t>(evidence)];
}

Library Library::parse(std::string_view text, const std::string& name) {
  const Reader reader(text, name);
  Library library(reader.machine());
  reader.points<DecodePoint>("decode", library);
  reader.points<AttentionPoint>("attention", library);
  reader.points<PrefillPoint>("prefill", library);
  return library;
}

Library Library::load(const std::string& name_or_path) {
  for (const hw::EmbeddedText& known : hw::embedded_library())
    if (known.name == name_or_path) return parse(known.text, std::string(known.name) + ".json");
  std::ifstream file = open_input(name_or_path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  return parse(text, name_or_path);
}

std::string Library::text() const {
  const Json json{{"format", kFormat},
                  {"machine", machine_},
                  {"decode", list_of(decode_)},
                  {"attention", list_of(attention_)},
                  {"prefill", list_of(prefill_)}};
  return json.dump(1) + "\n";
}

DecodeSteps::DecodeSteps(const Library& library, int ranks, int mtp)
    : step_(by_batch(steps_of(library, ranks, mtp), &DecodePoint::step_ms)),
      attention_half_(by_batch(steps_of(library, ranks, mtp), &DecodePoint::attention_half_us)),
      experts_half_(by_batch(steps_of(library, ranks, mtp), &DecodePoint::experts_half_us)) {
  const std::vector<DecodePoint> steps = steps_of(library, ranks, mtp);
  kv_ = steps.front().kv;
  microbatches_ = steps.front().microbatches;
  layers_alike_ = steps.front().layers_alike;
  layers_alone_ = steps.front().layers_alone;
  Points by_size;
  for (const DecodePoint& step : steps) by_size.emplace_back(step.batch, step.step_ms);
  std::ranges::sort(by_size);
  step_error_ = leave_one_out_error(by_size);
  std::map<int, Points> attention;
  for (const AttentionPoint& point : library.attention())
    if (point.mtp == mtp) attention[point.sequences].emplace_back(point.kv, point.us);
  for (auto& [sequences, points] : attention) {
    std::ranges::sort(points);
    attention_error_ = std::max(attention_error_, leave_one_out_error(points));
    rows_.push_back({static_cast<double>(sequences), curve_of(points)});
  }
}

double DecodeSteps::least_kv() const {
  double least = kv_;
  for (const Row& row : rows_) least = std::min(least, row.us.low());
  return least;
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

StepTime DecodeSteps::at(double batch, double kv) const {
  StepTime time{step_(batch)};
  if (!step_.has(batch))
    time.evidence = Evidence::extrapolated;
  else if (!step_.is_point(batch))
    time = {time.ms, Evidence::interpolated, step_error_};
  if (kv == kv_) return time;
  if (rows_.empty()) return {time.ms, Evidence::extrapolated, 0};
  bool inside = true;
  const double sequences = batch / 2 / microbatches_;
  const double more = attention_us(sequences, kv, inside) - attention_us(sequences, kv_, inside);
  const double attention = attention_half_(batch), experts = experts_half_(batch);
  const double half = std::max(attention + more, experts) - std::max(attention, experts);
  time.ms += microbatches_ * (layers_alike_ * half + layers_alone_ * more) * 1e-3;
  if (!inside) {
    time.evidence = Evidence::extrapolated;
  } else if (time.evidence == Evidence::measured) {
    time.evidence = Evidence::interpolated;
  }
  time.error = std::max(time.error, attention_error_);
  return time;
}

}  // namespace cm384::service
