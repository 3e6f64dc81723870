#include "traces/traffic_file.h"

#include <fmt/format.h>
#include <zstd.h>

#include <boost/crc.hpp>
#include <nlohmann/json.hpp>

#include "base/text/error.h"
#include "base/text/input_file.h"
#include "traces/bytes.h"
#include "traces/host_words.h"

namespace cm384::traces {
namespace {

constexpr std::string_view kMagic = "CM384TRC", kBlock = "BLK1", kIndex = "IDX1", kEnd = "CM384END";
constexpr std::uint32_t kVersion = 4;
constexpr std::size_t kBlockBytes = 256u << 10;       // raw, about
constexpr std::uint32_t kMostBlockBytes = 16u << 20;  // raw or compressed, that a reader takes
constexpr std::uint32_t kMostHeaderBytes = 1u << 20;
constexpr std::size_t kIndexEntry = 24, kBlockHead = 16;
constexpr int kLevel = 1;  // of zstd: the simulation waits for it

std::uint32_t crc_of(std::string_view bytes) {
  boost::crc_32_type crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

void encode(const TrafficRecord& r, std::uint64_t number, Time last, std::string& to) {
  // Four bits of kind, of which the fourth came last.
  const auto kind = static_cast<std::uint64_t>(r.kind);
  put_varint(to, (kind & 7) | kind >> 3 << 11 | static_cast<std::uint64_t>(r.operation) << 3 |
                     std::uint64_t{r.by_ub} << 5 | std::uint64_t{r.allocate} << 6 |
                     std::uint64_t{r.source.cpu} << 7 | std::uint64_t{r.moves() && r.target.cpu} << 8 |
                     static_cast<std::uint64_t>(r.engine) << 9 | std::uint64_t{!r.words.empty()} << 12 |
                     std::uint64_t{r.by_rdma} << 13 | std::uint64_t{r.moves() ? 0u : r.lane} << 14);
  put_zigzag(to, r.start.ps - last.ps);
  put_varint(to, static_cast<std::uint64_t>(r.end.ps - r.start.ps));
  put_varint(to, r.source.number);
  if (r.moves()) {
    put_varint(to, static_cast<std::uint64_t>(r.core) + 1);
    put_varint(to, r.target.number);
    put_varint(to, r.lane);
    put_varint(to, r.offset);
    put_varint(to, r.bytes);
    put_varint(to, r.bursts);
    if (r.bursts > 1) put_zigzag(to, r.stride);
  }
  put_varint(to, r.dependencies.size());
  for (const TrafficDependency& d : r.dependencies) {
    put_varint(to, (number - d.on) << 2 | static_cast<std::uint64_t>(d.kind));
    put_zigzag(to, d.delay.ps);
  }
  if (r.words.empty()) return;
  put_varint(to, r.words.size());
  for (const std::uint64_t word : r.words) put_varint(to, word);
}

}  // namespace

TrafficFileWriter::TrafficFileWriter(const std::string& path, const TrafficHeader& header) : file_(path) {
  nlohmann::ordered_json told{{"machine", header.machine}, {"study", header.study}};
  if (!header.shaped.empty()) told["shaped"] = header.shaped;
  const std::string json = told.dump();
  std::string head(kMagic);
  put_word(head, kVersion);
  put_word(head, static_cast<std::uint32_t>(json.size()));
  file_.write(head + json);
  std::string crc;
  put_word(crc, crc_of(json));
  file_.write(crc);
}

void TrafficFileWriter::add(const TrafficRecord& record) {
  if (const std::string fault = fault_of(record, records_); !fault.empty())
    throw InputError(fmt::format("record {}: {}", records_, fault));
  if (in_block_ == 0) {
    index_.push_back({file_.written(), records_, record.start.ps});
    last_ = Time{};
  }
  encode(record, records_++, last_, raw_);
  last_ = record.start;
  ++in_block_;
  if (raw_.size() >= kBlockBytes) end_block();
}

void TrafficFileWriter::end_block() {
  if (in_block_ == 0) return;
  std::string packed(ZSTD_compressBound(raw_.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), raw_.data(), raw_.size(), kLevel));
  std::string head(kBlock);
  put_word(head, in_block_);
  put_word(head, static_cast<std::uint32_t>(raw_.size()));
  put_word(head, static_cast<std::uint32_t>(packed.size()));
  put_word(head, crc_of(packed));
  file_.write(head);
  file_.write(packed);
  raw_.clear();
  in_block_ = 0;
}

void TrafficFileWriter::finish() {
  end_block();
  std::string entries;
  for (const BlockEntry& e : index_) {
    put_word(entries, e.offset);
    put_word(entries, e.first);
    put_word(entries, static_cast<std::uint64_t>(e.start_ps));
  }
  const std::uint64_t offset = file_.written();
  std::string head(kIndex);
  put_word(head, static_cast<std::uint32_t>(index_.size()));
  put_word(head, crc_of(entries));
  std::string foot;
  put_word(foot, offset);
  file_.write(head);
  file_.write(entries);
  file_.write(foot);
  file_.write(kEnd);
  file_.finish();
}

// --- reading

TrafficFileReader::TrafficFileReader(const std::string& path) : path_(path), stream_(open_input(path)) {
  read_header();
}

void TrafficFileReader::fail(std::uint64_t offset, const std::string& what) const {
  throw InputError(fmt::format("{}: offset {}: {}", path_, offset, what));
}

std::string TrafficFileReader::read(std::size_t bytes, const char* what) {
  // Piece by piece: what a damaged file announces need not be there.
  constexpr std::size_t kPiece = 256u << 10;
  std::string taken;
  std::size_t got = 0;
  while (got < bytes && stream_) {
    taken.resize(std::min(bytes, got + kPiece));
    stream_.read(taken.data() + got, static_cast<std::streamsize>(taken.size() - got));
    got += static_cast<std::size_t>(stream_.gcount());
  }
  if (got != bytes)
    fail(offset_ + got,
         fmt::format("{}: the file ends after {} of {} B; `cm384 trace cut` keeps what precedes", what, got,
                     bytes));
  offset_ += bytes;
  return taken;
}

void TrafficFileReader::read_header() {
  const std::string head = read(kMagic.size() + 8, "header");
  if (!head.starts_with(kMagic))
    fail(0, "header: not a traffic trace; allowed: a file that begins with CM384TRC");
  if (const auto version = word_at<std::uint32_t>(head, 8); version == 0 || version > kVersion)
    fail(8, fmt::format("version: {}; allowed: 1 to {}", version, kVersion));
  const auto bytes = word_at<std::uint32_t>(head, 12);
  if (bytes > kMostHeaderBytes) fail(12, fmt::format("header: {} B; allowed: {}", bytes, kMostHeaderBytes));
  const std::string json = read(bytes, "header");
  if (word_at<std::uint32_t>(read(4, "header"), 0) != crc_of(json))
    fail(16, "header: its CRC does not match");
  const auto parsed = nlohmann::json::parse(json, nullptr, false);
  if (!parsed.is_object()) fail(16, "header: no JSON object");
  header_ = {parsed.value("machine", ""), parsed.value("study", ""), {}};
  if (const auto shaped = parsed.find("shaped"); shaped != parsed.end() && shaped->is_array()) {
    for (const auto& line : *shaped)
      header_.shaped.push_back(line.is_string() ? line.get<std::string>() : line.dump());
  }
}

bool TrafficFileReader::read_block() {
  block_ = offset_;
  const std::string mark = read(4, "block");
  if (mark == kIndex) {
    check_index();
    return false;
  }
  if (mark != kBlock) fail(block_, "block: begins with something else; allowed: BLK1 or IDX1");
  const std::string head = read(kBlockHead, "block");
  const auto records = word_at<std::uint32_t>(head, 0), raw = word_at<std::uint32_t>(head, 4),
             packed = word_at<std::uint32_t>(head, 8), crc = word_at<std::uint32_t>(head, 12);
  if (raw > kMostBlockBytes || packed > kMostBlockBytes || records == 0 || records > raw)
    fail(block_ + 4, fmt::format("block: {} records in {} B, packed in {} B; allowed: 1 record or more, {} B",
                                 records, raw, packed, kMostBlockBytes));
  const std::string frame = read(packed, "block");
  if (crc_of(frame) != crc) fail(block_ + 16, "block: its CRC does not match");
  raw_.resize(raw);
  const std::size_t got = ZSTD_decompress(raw_.data(), raw_.size(), frame.data(), frame.size());
  if (ZSTD_isError(got) != 0 || got != raw)
    fail(block_ + 20, fmt::format("block: cannot be unpacked to {} B", raw));
  at_ = 0;
  left_ = records;
  last_ = Time{};
  return true;
}

void TrafficFileReader::check_index() {
  const std::string head = read(8, "index");
  const auto blocks = word_at<std::uint32_t>(head, 0);
  boost::crc_32_type crc;
  for (std::uint32_t k = 0; k < blocks; ++k) {
    const std::string entry = read(kIndexEntry, "index");
    crc.process_bytes(entry.data(), entry.size());
  }
  if (crc.checksum() != word_at<std::uint32_t>(head, 4)) fail(block_ + 8, "index: its CRC does not match");
  const std::string foot = read(16, "index");
  if (word_at<std::uint64_t>(foot, 0) != block_ || foot.substr(8) != kEnd)
    fail(offset_ - 16, "index: its end is malformed");
  if (stream_.peek() != std::ifstream::traits_type::eof()) fail(offset_, "index: data follows its end");
}

std::uint64_t TrafficFileReader::seek(Time start) {
  return seek_last([start](const BlockEntry& block) { return block.start_ps < start.ps; });
}

std::uint64_t TrafficFileReader::seek_record(std::uint64_t record) {
  return seek_last([record](const BlockEntry& block) { return block.first <= record; });
}

// To the last of the blocks up to the first that is not wanted; to the first one at least.
std::uint64_t TrafficFileReader::seek_last(const std::function<bool(const BlockEntry&)>& wanted) {
  stream_.clear();
  stream_.seekg(-16, std::ios::end);
  offset_ = static_cast<std::uint64_t>(stream_.tellg());
  const std::string foot = read(16, "index");
  const auto index = word_at<std::uint64_t>(foot, 0);
  if (foot.substr(8) != kEnd || index > offset_) fail(offset_ - 16, "index: the file has none");
  stream_.seekg(static_cast<std::streamoff>(index));
  block_ = offset_ = index;
  const std::string head = read(12, "index");
  if (!head.starts_with(kIndex)) fail(index, "index: the file has none");
  BlockEntry found{index, 0, 0};
  boost::crc_32_type crc;
  bool passed = false;
  for (std::uint32_t k = 0; k < word_at<std::uint32_t>(head, 4); ++k) {
    const std::string entry = read(kIndexEntry, "index");
    crc.process_bytes(entry.data(), entry.size());
    if (passed) continue;
    const BlockEntry block{word_at<std::uint64_t>(entry, 0), word_at<std::uint64_t>(entry, 8),
                           static_cast<std::int64_t>(word_at<std::uint64_t>(entry, 16))};
    passed = k != 0 && !wanted(block);
    if (!passed) found = block;
  }
  if (crc.checksum() != word_at<std::uint32_t>(head, 8)) fail(index + 8, "index: its CRC does not match");
  if (found.offset > index) fail(index, "index: points behind itself");
  stream_.seekg(static_cast<std::streamoff>(found.offset));
  offset_ = found.offset;
  raw_.clear();
  at_ = left_ = 0;
  ended_ = false;
  return number_ = found.first;
}

bool TrafficFileReader::next(TrafficRecord& record) {
  while (left_ == 0) {
    if (!ended_ && at_ != raw_.size()) fail(block_, "block: bytes after its last record");
    if (ended_ || !read_block()) {
      ended_ = true;
      return false;
    }
  }
  decode(record);
  --left_;
  ++number_;
  return true;
}

void TrafficFileReader::decode(TrafficRecord& r) {
  ByteReader bytes(std::string_view(raw_).substr(at_));
  const auto bad = [&](const std::string& what) {
    fail(block_, fmt::format("block: record {}, byte {} of its data: {}", number_, at_, what));
  };
  const std::uint64_t bits = bytes.varint();
  const std::uint64_t kind = (bits & 7) | (bits >> 11 & 1) << 3;
  if (kind >= kTrafficKinds || (bits >> 9 & 3) > 2 || bits >> 18 != 0) bad("kind: unknown");
  r.kind = static_cast<TrafficRecord::Kind>(kind);
  r.operation = static_cast<sim::Operation>(bits >> 3 & 3);
  r.by_ub = (bits >> 5 & 1) != 0;
  r.by_rdma = (bits >> 13 & 1) != 0;
  r.allocate = (bits >> 6 & 1) != 0;
  r.source.cpu = (bits >> 7 & 1) != 0;
  r.target.cpu = (bits >> 8 & 1) != 0;
  r.engine = static_cast<TrafficRecord::Engine>(bits >> 9 & 3);
  // Sums wrap where a file is damaged; the check below refuses what comes out.
  r.start.ps = static_cast<std::int64_t>(static_cast<std::uint64_t>(last_.ps) +
                                         static_cast<std::uint64_t>(bytes.zigzag()));
  r.end.ps = static_cast<std::int64_t>(static_cast<std::uint64_t>(r.start.ps) + bytes.varint());
  r.source.number = static_cast<std::uint16_t>(std::min<std::uint64_t>(bytes.varint(), kMostUnits));
  r.core = 0;
  if (!r.moves()) r.target = r.source;
  r.lane = static_cast<std::uint8_t>(bits >> 14 & 15);
  if (r.moves() && r.lane != 0) bad("kind: unknown");
  r.offset = r.bytes = 0;
  r.bursts = 1;
  r.stride = 0;
  if (r.moves()) {
    r.core = static_cast<int>(std::min<std::uint64_t>(bytes.varint(), 1u << 20)) - 1;
    r.target.number = static_cast<std::uint16_t>(std::min<std::uint64_t>(bytes.varint(), kMostUnits));
    const std::uint64_t lane = bytes.varint();
    if (lane > 15) bad("lane: above 15");
    r.lane = static_cast<std::uint8_t>(lane);
    r.offset = bytes.varint();
    r.bytes = bytes.varint();
    r.bursts = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes.varint(), 1u << 20));
    if (r.bursts > 1) r.stride = bytes.zigzag();
  }
  const std::uint64_t count = bytes.varint();
  if (count > kMostDependencies || count > bytes.left()) bad(fmt::format("dependencies: {} of them", count));
  r.dependencies.clear();
  for (std::uint64_t k = 0; k < count && bytes.good(); ++k) {
    const std::uint64_t back = bytes.varint();
    const Time delay{bytes.zigzag()};
    if ((back & 3) > 2 || back >> 2 == 0 || back >> 2 > number_) bad("dependencies: out of range");
    r.dependencies.push_back({number_ - (back >> 2), static_cast<TrafficDependency::Kind>(back & 3), delay});
  }
  r.words.clear();
  if ((bits >> 12 & 1) != 0) {
    const std::uint64_t words = bytes.varint();
    if (words > kMostWords) bad(fmt::format("words: {} of them; allowed: {}", words, kMostWords));
    for (std::uint64_t k = 0; k < words && bytes.good(); ++k) r.words.push_back(bytes.varint());
  }
  if (!bytes.good()) bad("ends before the record does");
  if (const std::string fault = fault_of(r, number_); !fault.empty()) bad(fault);
  at_ += bytes.at();
  last_ = r.start;
}

}  // namespace cm384::traces
