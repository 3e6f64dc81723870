#include "lab/sweeps/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace cm384::sweeps {

// The best value is nearest to the side of `missed_`: the smallest that meets the target has the misses
// below.
Search::Search(const Find& find, const Axis& axis) : find_(find), axis_(axis) {
  const double low = axis.range ? axis.range->first : 0;
  const double high = axis.range ? axis.range->second : static_cast<double>(axis.values.size() - 1);
  missed_ = find.smallest ? low : high;
  met_ = find.smallest ? high : low;
}

std::string Search::text(double place) const {
  return axis_.range ? axis_.scale.text(place) : axis_.values[static_cast<std::size_t>(place)];
}

std::vector<std::string> Search::ask() {
  if (done_) return {};
  std::vector<std::string> values;
  const auto ask_for = [&](double place) {
    values.push_back(text(place));
    places_[values.back()] = place;
  };
  if (places_.empty()) {
    ask_for(missed_);
    ask_for(met_);
  } else if (outcomes_.size() == places_.size()) {
    if (const auto place = middle()) ask_for(*place);
  }
  return values;
}

// The next place to look at; nothing: the border is known as well as it is asked for.
std::optional<double> Search::middle() const {
  const double low = std::min(missed_, met_), high = std::max(missed_, met_);
  if (!axis_.range) {
    if (high - low <= 1) return std::nullopt;
    return std::floor((low + high) / 2);
  }
  if (high - low <= find_.resolution * std::max(std::abs(low), std::abs(high))) return std::nullopt;
  const double place = axis_.logarithmic ? std::sqrt(low * high) : (low + high) / 2;
  // Finer than the parameter's resolution there is nothing.
  if (places_.contains(text(place))) return std::nullopt;
  return place;
}

void Search::end(std::optional<std::string> found, std::string reason) {
  done_ = true;
  found_ = std::move(found);
  reason_ = std::move(reason);
}

void Search::tell(const std::string& value, std::optional<bool> met) {
  const double place = places_.at(value);
  outcomes_[place] = met;
  if (!met) {
    end(std::nullopt, fmt::format("the run with {} failed", value));
    return;
  }
  if (outcomes_.size() < places_.size() || done_) return;
  if (outcomes_.size() == 2) {
    const bool at_best = *outcomes_.at(missed_), at_worst = *outcomes_.at(met_);
    if (at_best) {
      end(text(missed_),
          at_worst ? "" : "the target is met at the best end of the axis and missed at the other");
      return;
    }
    if (!at_worst) {
      end(std::nullopt, fmt::format("the target is missed at both ends, {} and {}",
                                    text(std::min(missed_, met_)), text(std::max(missed_, met_))));
      return;
    }
  } else {
    (*met ? met_ : missed_) = place;
  }
  if (!middle()) end(text(met_), "");
}

std::vector<std::string> Search::values() const {
  std::vector<std::string> values;
  for (const auto& [place, met] : outcomes_) values.push_back(text(place));
  return values;
}

}  // namespace cm384::sweeps
