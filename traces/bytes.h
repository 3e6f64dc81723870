// Little-endian words and variable-length integers in byte strings.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace cm384::traces {

template <class Word>
void put_word(std::string& to, Word word) {
  for (std::size_t k = 0; k < sizeof word; ++k) to.push_back(static_cast<char>(word >> (8 * k)));
}

template <class Word>
Word word_at(std::string_view from, std::size_t at) {
  Word word = 0;
  for (std::size_t k = 0; k < sizeof word; ++k)
    word = static_cast<Word>(word | static_cast<Word>(static_cast<unsigned char>(from[at + k])) << (8 * k));
  return word;
}

// Seven bits a byte, low ones first.
inline void put_varint(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<char>(value | 0x80));
  to.push_back(static_cast<char>(value));
}
// Small numbers of either sign.
inline void put_zigzag(std::string& to, std::int64_t value) {
  put_varint(to, static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63));
}

// Takes integers off a byte string; after a failure it only gives 0.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  bool good() const { return good_; }
  std::size_t at() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) break;
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      if (shift == 63 && byte > 1) break;
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return good_ ? value : 0;
    }
    good_ = false;
    at_ = bytes_.size();
    return 0;
  }
  std::int64_t zigzag() {
    const std::uint64_t value = varint();
    return static_cast<std::int64_t>(value >> 1 ^ (0 - (value & 1)));
  }
  std::string_view take(std::uint64_t count) {
    if (count > left()) {
      good_ = false;
      at_ = bytes_.size();
      return {};
    }
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
  bool good_ = true;
};

}  // namespace cm384::traces
