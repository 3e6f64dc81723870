// A study of nothing in particular, as sweeps see it: three options and a parameter.
#pragma once

#include <algorithm>
#include <array>

#include "base/text/error.h"
#include "lab/sweeps/plan.h"

namespace cm384::sweeps {

struct StandInOptions {
  int ranks = 8;
  double load = 0.5;
  std::string mode = "spray";
  Time latency{100'000};
  Bandwidth rate{28'000'000'000};
  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("ranks", self.ranks, hw::Range{2, 768, 2}, "an even number");
    visit("load", self.load, hw::Range{0.0, 1.0}, "a real number");
    visit("mode", self.mode, hw::OneOf{{"spray", "flow"}}, "a name");
    visit("link.latency", self.latency, hw::Range{Time{1}, Time{10'000'000}}, "a time");
    visit("link.rate", self.rate, hw::Range{Bandwidth{1}, Bandwidth{400'000'000'000}}, "a rate");
  }
};

class StandInSubject final : public Subject {
 public:
  void choose(const std::string& study) override {
    if (study != "dispatch") throw InputError(study + ": no such study");
  }
  std::span<const studies::Field> fields() const override {
    static constexpr std::array kFields{studies::Field{"latency_us", studies::FieldType::object,
                                                       "of something", true, studies::kSummaryParts},
                                        studies::Field{"share", studies::FieldType::ratio, "of something"}};
    return kFields;
  }
  Scale scale(const std::string& key) override {
    StandInOptions options;
    return Scale(find(options, key));
  }
  std::vector<std::string> arguments(const std::vector<Setting>& settings) override {
    std::vector<std::string> words{"dispatch"};
    for (const auto& [key, value] : settings) words.push_back("--" + key + "=" + value);
    return words;
  }
  std::string value(const std::vector<Setting>& settings, const std::string& key) override {
    StandInOptions options = effective(settings);
    return hw::value_text(find(options, key));
  }
  std::string identity(const std::vector<Setting>& settings) override {
    StandInOptions options = effective(settings);
    std::string all;
    for (const hw::Parameter& parameter : list(options)) all += hw::value_text(parameter) + ";";
    return all;
  }

 private:
  static std::vector<hw::Parameter> list(StandInOptions& options) {
    std::vector<hw::Parameter> parameters;
    StandInOptions::describe(options, hw::detail::Lister(parameters));
    return parameters;
  }
  static hw::Parameter find(StandInOptions& options, const std::string& key) {
    for (const hw::Parameter& parameter : list(options)) {
      if (parameter.key == key) return parameter;
    }
    throw InputError("'" + key + "': no such option");
  }
  static StandInOptions effective(const std::vector<Setting>& settings) {
    StandInOptions options;
    for (const auto& [key, value] : settings) hw::assign(find(options, key), value);
    return options;
  }
};

}  // namespace cm384::sweeps
