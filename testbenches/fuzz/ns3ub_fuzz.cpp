// A case of ns-3-UB: its traffic.csv ends in good records or an InputError, and so do, behind bytes of 0,
// node.csv, topology.csv, routing_table.csv and fault.csv in a network, and network_attribute.txt in
// settings.
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/text/error.h"
#include "hw/ns3ub_settings.h"
#include "hw/parameters/ub.h"
#include "hw/topology_files.h"
#include "testbenches/fuzz/checked_sink.h"
#include "testbenches/fuzz/memory_file.h"
#include "traces/import.h"
#include "ub_fabric/topology/network.h"

namespace {

using namespace cm384;

std::array<fuzz::MemoryFile, 6>& files() {
  static std::array<fuzz::MemoryFile, 6> all;
  return all;
}

void read_case() {
  hw::Topology topology;
  topology.kind = "file";
  auto read = std::make_shared<hw::TopologyFiles>(
      hw::read_topology({files()[1].path(), files()[2].path(), files()[3].path(), files()[4].path(), false}));
  if (read->nodes.size() > 64) return;
  topology.files = read;
  ub::Network::of(topology);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::size_t begin = 0;
  for (fuzz::MemoryFile& file : files()) {
    std::size_t end = begin;
    while (end < size && data[end] != 0) ++end;
    file.fill(data + begin, end - begin);
    begin = std::min(size, end + 1);
  }
  try {
    traces::is_ns3ub(files()[0].path());
    fuzz::CheckedSink sink;
    traces::import_ns3ub(files()[0].path(), {}, sink);
  } catch (const InputError&) {
  }
  try {
    read_case();
  } catch (const InputError&) {
  }
  try {
    hw::read_ns3ub_settings(files()[5].path());
  } catch (const InputError&) {
  }
  return 0;
}
