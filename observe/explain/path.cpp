#include "observe/explain/path.h"

namespace cm384::observe {

std::string_view name_of(Part part) {
  static constexpr std::array<std::string_view, kParts> kNames{
      "host",
      "launch and teardown",
      "scalar unit",
      "instruction fetch",
      "scalar loads and stores",
      "vector unit",
      "cube unit",
      "L1 to L0",
      "fixpipe",
      "copy issue",
      "L2 and on-die network",
      "core port",
      "waiting in L2",
      "HBM",
      "controller write interval",
      "controller read interval",
      "die link bandwidth",
      "socket link bandwidth",
      "trunk bandwidth",
      "credit return",
      "wire and switch latency",
      "controller latency",
      "controller target interval",
      "package link",
      "waiting in the fabric",
      "barrier",
      "cross-core flag",
      "polling",
      "SDMA",
      "other",
  };
  return kNames[static_cast<std::size_t>(part)];
}

const ResourceText& text_of(Resource resource) {
  static const std::array<ResourceText, kResources> texts{{
      {"", {}, {}},
      {"host",
       {"host.call", "host.submit_latency", "host.doorbell_latency", "host.completion_latency",
        "host.message_latency"},
       {}},
      {"launch and teardown",
       {"scheduler.entry_interval", "scheduler.entry_latency", "scheduler.kernel_setup",
        "scheduler.block_interval", "scheduler.block_head", "scheduler.block_tail",
        "scheduler.kernel_teardown", "scheduler.completion_latency", "scheduler.graph_block_head",
        "scheduler.graph_block_tail"},
       {}},
      {"scalar unit", {}, {}},
      {"instruction fetch", {}, {}},
      {"vector unit", {"vector_core.*.head", "vector_core.*.slope", "vector_core.*.tail"}, {}},
      {"cube unit", {}, {}},
      {"L1 to L0",
       {"cube_core.load_latency"},
       {"cube_core.l0a_bytes_per_cycle", "cube_core.l0b_bytes_per_cycle", "cube_core.table_bytes_per_cycle"}},
      {"fixpipe", {}, {"cube_core.fixpipe_bytes_per_cycle"}},
      {"copy issue",
       {"mte.read_setup", "mte.write_setup", "mte.read_instruction_overhead",
        "mte.write_instruction_overhead", "mte.read_request_interval", "mte.write_request_interval",
        "cube_mte.read_setup", "cube_mte.write_setup", "cube_mte.read_instruction_overhead",
        "cube_mte.write_instruction_overhead", "cube_mte.read_request_interval",
        "cube_mte.write_request_interval"},
       {}},
      {"L2 and on-die network latency",
       {"l2.hit_latency", "l2.write_latency", "on_die_network.request_latency",
        "on_die_network.response_latency"},
       {}},
      {"core port",
       {},
       {"on_die_network.hbm_read_bytes_per_cycle", "on_die_network.l2_read_bytes_per_cycle",
        "on_die_network.write_bytes_per_cycle", "on_die_network.realign_bytes_per_cycle"}},
      {"HBM bandwidth", {}, {"hbm.pseudo_channels"}},
      {"controller write interval", {"ub.controller.write_interval"}, {}},
      {"controller read interval", {"ub.controller.read_interval"}, {}},
      {"link bandwidth", {}, {"ub.link.bandwidth"}},
      {"die link bandwidth", {"ub.link.trunk_rate"}, {"ub.link.bandwidth"}},
      {"socket link bandwidth", {}, {"cpu.bandwidth"}},
      {"trunk bandwidth", {}, {"ub.link.trunk_rate"}},
      {"link buffers", {}, {"ub.link.buffer_cells"}},
      {"wire and switch latency",
       {"ub.link.endpoint_latency", "ub.link.trunk_latency", "ub.switch.pipeline_latency"},
       {}},
      {"controller latency",
       {"ub.controller.read_inbound_latency", "ub.controller.write_inbound_latency",
        "ub.controller.completion_latency"},
       {}},
      {"controller target interval",
       {"ub.controller.target_read_interval", "ub.controller.target_write_interval"},
       {}},
      {"package link", {"package_link.latency"}, {"package_link.bandwidth"}},
      {"barrier", {"die.sync_all_latency"}, {}},
      {"cross-core flag", {"die.cross_core_flag_latency"}, {}},
  }};
  return texts[static_cast<std::size_t>(resource)];
}

Resource resource_of(Part part) {
  static constexpr std::array<Resource, kParts> kResourceOf{
      Resource::host,           Resource::launch,    Resource::scalar,          Resource::fetch,
      Resource::l2,             Resource::vector,    Resource::cube,            Resource::l0_load,
      Resource::fixpipe,        Resource::copy_issue, Resource::l2,             Resource::port,
      Resource::none,           Resource::hbm,       Resource::write_interval,  Resource::read_interval,
      Resource::die_link,       Resource::socket_link, Resource::trunk,         Resource::buffers,
      Resource::wire,           Resource::inbound,   Resource::target_interval, Resource::package,
      Resource::none,           Resource::barrier,   Resource::core_flag,       Resource::none,
      Resource::none,           Resource::none};
  return kResourceOf[static_cast<std::size_t>(part)];
}

}  // namespace cm384::observe
