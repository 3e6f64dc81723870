// Binary traffic traces: anything ends in good records or an InputError. Where the first byte is even the
// rest is the file; where it is odd the rest is the data of one block, in a file whose frame, compression and
// checksums are right, which random bytes would never get past.
#include <zstd.h>

#include <boost/crc.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/text/error.h"
#include "testbenches/fuzz/checked_sink.h"
#include "testbenches/fuzz/memory_file.h"
#include "traces/bytes.h"
#include "traces/traffic_file.h"

namespace {

std::uint32_t crc_of(std::string_view bytes) {
  boost::crc_32_type crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

// A file with the block, cut off behind it.
std::string framed(std::string_view data) {
  using cm384::traces::put_word;
  if (data.size() < 2) return {};
  const auto records = static_cast<std::uint32_t>(static_cast<unsigned char>(data[0])) + 1;
  data.remove_prefix(1);
  std::string packed(ZSTD_compressBound(data.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), data.data(), data.size(), 1));
  std::string file = "CM384TRC";
  put_word(file, std::uint32_t{1});
  put_word(file, std::uint32_t{2});
  file += "{}";
  put_word(file, crc_of("{}"));
  file += "BLK1";
  put_word(file, records);
  put_word(file, static_cast<std::uint32_t>(data.size()));
  put_word(file, static_cast<std::uint32_t>(packed.size()));
  put_word(file, crc_of(packed));
  return file + packed;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cm384;
  static fuzz::MemoryFile file;
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string bytes = data[0] % 2 == 0 ? std::string(rest) : framed(rest);
  file.fill(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  traces::TrafficRecord record;
  try {
    traces::TrafficFileReader reader(file.path());
    fuzz::CheckedSink sink;
    while (reader.next(record)) sink.add(record);
  } catch (const InputError&) {
  }
  try {
    traces::TrafficFileReader reader(file.path());
    reader.seek(Time{1'000'000});
    while (reader.next(record)) {
    }
  } catch (const InputError&) {
  }
  return 0;
}
