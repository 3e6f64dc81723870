#include "base/text/unpacked_input.h"

#include <fmt/format.h>
#include <zlib.h>

#include <fstream>
#include <streambuf>
#include <vector>

#include "base/text/error.h"
#include "base/text/input_file.h"

namespace cm384 {
namespace {

constexpr std::size_t kUnpackedPiece = std::size_t{256} << 10;
constexpr int kGzipOnly = 15 + 16;  // zlib: the largest window, with gzip's header

class Unpacking final : public std::streambuf {
 public:
  Unpacking(const std::string& path, std::ifstream stream)
      : path_(path), stream_(std::move(stream)), packed_(kUnpackedPiece), unpacked_(kUnpackedPiece) {
    if (inflateInit2(&state_, kGzipOnly) != Z_OK) fail("zlib cannot be initialised");
  }
  ~Unpacking() override { inflateEnd(&state_); }
  Unpacking(const Unpacking&) = delete;
  Unpacking& operator=(const Unpacking&) = delete;

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(fmt::format("{}: gzip: {}", path_, what));
  }

  bool refill() {
    stream_.read(reinterpret_cast<char*>(packed_.data()), static_cast<std::streamsize>(packed_.size()));
    state_.next_in = packed_.data();
    state_.avail_in = static_cast<uInt>(stream_.gcount());
    return state_.avail_in != 0;
  }

  int_type underflow() override {
    while (!ended_) {
      if (state_.avail_in == 0 && !refill()) fail("the file ends before its contents do");
      state_.next_out = unpacked_.data();
      state_.avail_out = static_cast<uInt>(unpacked_.size());
      const int status = inflate(&state_, Z_NO_FLUSH);
      if (status == Z_STREAM_END) {
        // Another one may stand behind it, as `cat a.gz b.gz` makes them.
        ended_ = state_.avail_in == 0 && !refill();
        if (!ended_ && inflateReset(&state_) != Z_OK) fail("zlib cannot be reset");
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        fail(state_.msg != nullptr ? state_.msg : "is damaged");
      }
      const std::size_t got = unpacked_.size() - state_.avail_out;
      if (got == 0) continue;
      auto* const begin = reinterpret_cast<char*>(unpacked_.data());
      setg(begin, begin, begin + got);
      return traits_type::to_int_type(*begin);
    }
    return traits_type::eof();
  }

  std::string path_;
  std::ifstream stream_;
  std::vector<unsigned char> packed_, unpacked_;
  z_stream state_{};
  bool ended_ = false;
};

class UnpackedStream final : public std::istream {
 public:
  UnpackedStream(const std::string& path, std::ifstream stream)
      : std::istream(nullptr), buffer_(path, std::move(stream)) {
    rdbuf(&buffer_);
    exceptions(std::ios::badbit);  // what the buffer throws goes up
  }

 private:
  Unpacking buffer_;
};

}  // namespace

std::unique_ptr<std::istream> open_unpacked(const std::string& path) {
  std::ifstream stream = open_input(path);
  // A pipe cannot be wound back: one byte is looked at, which no text begins with.
  if (stream.peek() != 0x1f) return std::make_unique<std::ifstream>(std::move(stream));
  return std::make_unique<UnpackedStream>(path, std::move(stream));
}

std::string without_gz(const std::string& path) {
  return path.ends_with(".gz") ? path.substr(0, path.size() - 3) : path;
}

}  // namespace cm384
