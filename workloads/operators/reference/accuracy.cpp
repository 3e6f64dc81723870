#include "workloads/operators/reference/accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <numbers>

#include "base/text/error.h"
#include "base/text/number.h"
#include "traces/random.h"

namespace cm384::reference {
namespace {

// Box and Muller's.
double draw_normal(traces::Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.real()));
  return radius * std::cos(2 * std::numbers::pi * random.real());
}

double draw_laplace(traces::Random& random) {
  const double magnitude = -std::log(1 - random.real()) / std::numbers::sqrt2;
  return random.below(2) == 0 ? magnitude : -magnitude;
}

}  // namespace

Draw parse_draw(std::string_view text) {
  constexpr std::string_view kOutliers = "outliers:";
  if (text == "normal") return {};
  if (text == "laplace") return {Draw::Kind::laplace, 0, 1};
  if (text.starts_with(kOutliers)) {
    const std::string_view rest = text.substr(kOutliers.size());
    const std::size_t colon = rest.find(':');
    if (colon != std::string_view::npos) {
      const auto channels = hw::number_of<int>(rest.substr(0, colon));
      const auto factor = hw::number_of<double>(rest.substr(colon + 1));
      if (channels && factor && *channels >= 1 && *factor >= 1 && *factor <= 1e6)
        return {Draw::Kind::outliers, *channels, *factor};
    }
  }
  throw InputError(fmt::format(
      "{}: allowed: normal, laplace, or outliers:N:FACTOR with 1 or more channels and a factor from 1 to 1e6",
      text));
}

std::vector<float> draw_rows(const Draw& draw, std::uint64_t seed, std::uint64_t stream, std::uint64_t rows,
                             std::uint32_t width) {
  std::vector<double> gains(width, 1.0);
  if (draw.kind == Draw::Kind::outliers) {
    const auto channels = static_cast<std::uint64_t>(draw.channels);
    if (channels > width)
      throw InputError(fmt::format("outliers: {} channels of {}; allowed: at most all", channels, width));
    for (std::uint64_t n = 0; n < channels; ++n) gains[(2 * n + 1) * width / (2 * channels)] = draw.factor;
  }
  traces::Random random(seed, stream);
  std::vector<float> made;
  made.reserve(rows * width);
  for (std::uint64_t row = 0; row < rows; ++row) {
    for (const double gain : gains) {
      const double value = draw.kind == Draw::Kind::laplace ? draw_laplace(random) : draw_normal(random);
      made.push_back(static_cast<float>(value * gain));
    }
  }
  return made;
}

std::optional<double> Deviation::snr_db() const {
  if (noise_ == 0 || wanted_ == 0) return {};
  return 10 * std::log10(wanted_ / noise_);
}

double Deviation::largest_error() const {
  return wanted_ > 0 ? largest_ / std::sqrt(wanted_ / static_cast<double>(count_)) : 0;
}

double Deviation::cosine() const {
  return wanted_ > 0 && got_ > 0 ? product_ / std::sqrt(wanted_ * got_) : 1;
}

void Crest::add(std::span<const float> row) {
  double peak = 0, sum = 0;
  for (const float value : row) {
    const double square = double{value} * value;
    peak = std::max(peak, square);
    sum += square;
  }
  peaks_ += peak;
  squares_ += sum / static_cast<double>(row.size());
}

}  // namespace cm384::reference
