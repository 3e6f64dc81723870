// How far computed values are from those of exact arithmetic, and tensors drawn to see it by.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cm384::reference {

// How activations are drawn: each element from one distribution of variance 1; of outliers, from the normal
// one, and some channels, spread evenly and the same in all rows, multiplied.
struct Draw {
  enum class Kind : std::uint8_t { normal, laplace, outliers };
  Kind kind = Kind::normal;
  int channels = 0;   // of outliers
  double factor = 1;  // that they are multiplied by
};
// Of "normal", "laplace" or "outliers:N:FACTOR". Throws InputError.
Draw parse_draw(std::string_view text);
inline void check_draw(std::string_view text) {
  parse_draw(text);
}

// Rows by seed and stream. Throws InputError for more outliers than channels.
std::vector<float> draw_rows(const Draw& draw, std::uint64_t seed, std::uint64_t stream, std::uint64_t rows,
                             std::uint32_t width);

// Values beside those that they should be.
class Deviation {
 public:
  void add(double got, double wanted) {
    const double difference = got - wanted;
    noise_ += difference * difference;
    wanted_ += wanted * wanted;
    got_ += got * got;
    product_ += got * wanted;
    largest_ = std::fmax(largest_, std::fabs(difference));
    ++count_;
  }

  // Power of the wanted values over that of the differences, in dB; nothing where they are equal.
  std::optional<double> snr_db() const;
  // Frobenius norm of the differences over that of the wanted values.
  double relative_error() const { return wanted_ > 0 ? std::sqrt(noise_ / wanted_) : 0; }
  // The largest difference over the root mean square of the wanted values.
  double largest_error() const;
  double cosine() const;

 private:
  double noise_ = 0, wanted_ = 0, got_ = 0, product_ = 0, largest_ = 0;
  std::uint64_t count_ = 0;
};

// Largest magnitudes of rows over their root mean squares: of all rows, the root of the mean square of the
// ones over that of the others. INT8 by the largest magnitude of each row then has a signal to noise ratio of
// 20 log10(127 sqrt(12)) = 52.9 dB less 20 log10 of it.
class Crest {
 public:
  void add(std::span<const float> row);
  double value() const { return squares_ > 0 ? std::sqrt(peaks_ / squares_) : 1; }

 private:
  double peaks_ = 0, squares_ = 0;  // sums over rows: of the largest square, of the mean square
};

// What an operator, or a step of one, made of drawn tensors.
struct StageAccuracy {
  std::string name;
  Deviation exact{};    // from double precision on the tensors as drawn
  Deviation bf16{};     // from BF16 arithmetic: operands and results rounded to BF16, sums exact
  Deviation of_bf16{};  // of BF16 arithmetic from double precision
  std::optional<double> crest{}, weights_crest{};  // of what was quantised
  std::optional<Deviation> own{};  // from double precision on what the operator read; empty: not compared
};

}  // namespace cm384::reference
