#include "testbenches/system/knob_table.h"

#include <array>

namespace cm384::testing {
namespace {

// A memory that its 48 cores press hard: an L2 that evicts, write queues that drain.
constexpr std::string_view kSmallL2 = "l2.capacity=1MiB hbm.write_queue=4";

// Links that queue.
constexpr std::string_view kSlowLinks = "ub.link.bandwidth=2GB/s";

constexpr Knob kKnobs[] = {
    {"die.clock", "925MHz", "core", "kernel", Way::up},
    {"die.aiv", "24", "stream 64x2048", "kernel", Way::refused},
    {"die.sys_count", "100MHz", "core", "sys-count", Way::up},
    {"die.sync_all_latency", "5us", "core", "barrier", Way::up},
    {"die.cross_core_flag_latency", "1us", "core", "cross-core", Way::up},
    {"scheduler.entry_latency", "16us", "core", "task", Way::up},
    {"scheduler.kernel_setup", "16us", "core", "task", Way::up},
    {"scheduler.block_interval", "1us", "stream 64x2048", "task", Way::up},
    {"scheduler.block_head", "16us", "core", "task", Way::up},
    {"scheduler.block_tail", "16us", "core", "task", Way::up},
    {"scheduler.kernel_teardown", "16us", "core", "task", Way::up},
    {"scheduler.completion_latency", "16us", "core", "task", Way::up},
    {"scheduler.queue_depth", "2", "streams", "chain", Way::up},
    {"scheduler.slots", "1", "streams", "many", Way::up},
    {"scheduler.entry_interval", "20us", "streams", "many", Way::up},

    {"sdma.channels", "1", "streams", "many", Way::up},
    {"sdma.parse_latency", "5us", "streams", "copy", Way::up},
    {"sdma.translation_latency", "5us", "streams", "copy", Way::up},
    {"sdma.descriptor_gap", "5us", "streams", "many", Way::up, "sdma.channels=1"},
    {"sdma.bandwidth", "20GB/s", "streams", "read-bandwidth", Way::down},
    {"sdma.read_outstanding", "16", "streams", "read-bandwidth", Way::down},
    {"sdma.write_outstanding", "16", "streams", "write-bandwidth", Way::down},

    {"host.call", "50us", "streams", "many", Way::up},
    {"host.submit_latency", "50us", "streams", "copy", Way::up},
    {"host.doorbell_latency", "50us", "streams", "copy", Way::up},
    {"host.completion_latency", "50us", "streams", "copy", Way::up},
    {"host.message_latency", "50us", "streams", "barrier", Way::up},

    {"scalar_core.load_use", "9", "core", "loads", Way::up},
    {"scalar_core.multiply", "9", "core", "multiply", Way::up},
    {"scalar_core.divide", "40", "core", "divide", Way::up},
    {"scalar_core.float_operation", "9", "core", "float", Way::up},
    {"scalar_core.float_divide", "32", "core", "float-divide", Way::up},
    {"scalar_core.float_square_root", "32", "core", "float-root", Way::up},
    {"scalar_core.taken_branch", "5", "core", "taken", Way::up},
    {"scalar_core.branch_mispredict", "12", "core", "mispredict", Way::up},
    {"scalar_core.trap", "20", "core", "trap", Way::up},
    {"scalar_core.instruction_cache", "4KiB", "core", "code", Way::up},
    {"scalar_core.instruction_cache_ways", "1", "core", "code", Way::up},
    {"scalar_core.instruction_cache_line", "256B", "core", "code-cold", Way::down},
    {"scalar_core.data_cache", "4KiB", "core", "data", Way::up},
    {"scalar_core.data_cache_ways", "1", "core", "data", Way::up},
    {"scalar_core.data_cache_line", "256B", "core", "data-cold", Way::down},
    {"scalar_core.ubuffer_load", "30", "core", "ubuffer-load", Way::up},
    {"scalar_core.ubuffer_store", "30", "core", "ubuffer-store", Way::up},
    {"scalar_core.cache_clean_line", "9", "core", "clean", Way::up},

    {"vector_core.queue_depth", "4", "core", "queue", Way::up},
    {"mte.read_setup", "900", "core", "read", Way::up},
    {"mte.write_setup", "900", "core", "write", Way::up},
    {"mte.read_instruction_overhead", "200", "core", "short-reads", Way::up},
    {"mte.write_instruction_overhead", "200", "core", "short-writes", Way::up},
    {"mte.read_request_interval", "100", "core", "reads", Way::up},
    {"mte.write_request_interval", "100", "core", "writes", Way::up},
    {"mte.local_read_window", "1KiB", "core", "reads", Way::up},
    {"mte.local_write_window", "1KiB", "core", "writes", Way::up},
    {"mte.remote_reads", "2", "p2p read npu", "bandwidth", Way::down},
    {"mte.remote_writes", "2", "p2p write npu", "bandwidth", Way::down},
    {"mte.remote_partial_write", "byte-enable", "dispatch", "kernel", Way::down},

    {"die.aic", "2", "gemm", "kernel", Way::refused},
    {"cube_core.queue_depth", "4", "cube", "queue", Way::up},
    {"cube_core.mmad_setup", "20", "cube", "mmad", Way::up},
    {"cube_core.mmad_f32_passes", "8", "cube", "mmad-f32", Way::up},
    {"cube_core.l0a_bytes_per_cycle", "64", "cube", "load-a", Way::up},
    {"cube_core.l0b_bytes_per_cycle", "64", "cube", "load-b", Way::up},
    {"cube_core.table_bytes_per_cycle", "2", "cube", "table", Way::up},
    {"cube_core.load_latency", "100", "cube", "load-a", Way::up},
    {"cube_core.fixpipe_bytes_per_cycle", "8", "cube", "fix", Way::up},
    {"cube_mte.read_setup", "900", "cube", "read", Way::up},
    {"cube_mte.write_setup", "900", "cube", "write", Way::up},
    {"cube_mte.read_instruction_overhead", "200", "cube", "short-reads", Way::up},
    {"cube_mte.write_instruction_overhead", "200", "cube", "short-writes", Way::up},
    {"cube_mte.read_request_interval", "100", "cube", "reads", Way::up},
    {"cube_mte.write_request_interval", "100", "cube", "writes", Way::up},
    {"cube_mte.local_read_window", "1KiB", "cube", "reads", Way::up},
    {"cube_mte.local_write_window", "1KiB", "cube", "writes", Way::up},
    {"cube_mte.remote_reads", "2", "cube", "remote-reads", Way::up},
    {"cube_mte.remote_writes", "2", "cube", "remote-writes", Way::up},
    {"cube_mte.remote_partial_write", "byte-enable", "cube", "remote-partial", Way::down},

    {"on_die_network.clock", "925MHz", "core", "memory", Way::up},
    {"on_die_network.core_ports", "8", "core", "memory", Way::refused},
    {"on_die_network.external_ports", "1", "p2p read npu", "bandwidth", Way::down,
     "on_die_network.external_bytes_per_cycle=16"},
    {"on_die_network.request_latency", "500ns", "core", "read", Way::up},
    {"on_die_network.response_latency", "500ns", "core", "read", Way::up},
    {"on_die_network.hbm_read_bytes_per_cycle", "2", "core", "reads", Way::up},
    {"on_die_network.l2_read_bytes_per_cycle", "2", "core", "memory", Way::up},
    {"on_die_network.write_bytes_per_cycle", "2", "core", "writes", Way::up},
    {"on_die_network.realign_bytes_per_cycle", "1", "stream unaligned", "kernel", Way::up},
    {"on_die_network.external_bytes_per_cycle", "4", "p2p read npu", "bandwidth", Way::down},

    {"l2.capacity", "1MiB", "core", "memory", Way::up},
    {"l2.sector", "512B", "core", "memory", Way::either, kSmallL2},
    {"l2.ways", "1", "core", "memory", Way::either, kSmallL2},
    {"l2.slices", "1", "core", "memory", Way::up},
    {"l2.slice_bandwidth", "2GB/s", "core", "memory", Way::up},
    {"l2.hit_latency", "500ns", "core", "memory", Way::up},
    {"l2.write_latency", "1us", "core", "write", Way::up},
    {"l2.line_hold", "1us", "core", "memory", Way::up},
    {"l2.atomic_latency", "2us", "core", "memory", Way::up},
    {"l2.fetch", "128B", "core", "memory", Way::either, kSmallL2},

    {"hbm.capacity", "256MiB", "core", "memory", Way::refused},
    {"hbm.stacks", "1", "stream 64x2048", "bandwidth", Way::down},
    {"hbm.pseudo_channels", "4", "stream 64x2048", "bandwidth", Way::down},
    {"hbm.bank_groups", "1", "core", "memory", Way::up,
     "l2.capacity=1MiB hbm.write_queue=4 hbm.train_bank_groups=1"},
    {"hbm.banks_per_group", "1", "core", "memory", Way::up, kSmallL2},
    {"hbm.row", "8KiB", "core", "memory", Way::either, kSmallL2},
    {"hbm.burst", "64B", "core", "memory", Way::either, kSmallL2},
    {"hbm.train_bank_groups", "1", "stream 64x2048", "bandwidth", Way::down},
    {"hbm.hash", "false", "core", "memory", Way::up, kSmallL2},
    {"hbm.clock", "400MHz", "core", "memory", Way::up, kSmallL2},
    {"hbm.controller_latency", "1us", "core", "memory", Way::up},
    {"hbm.write_queue", "1", "core", "memory", Way::either, kSmallL2},
    {"hbm.refresh", "off", "stream 64x2048", "bandwidth", Way::up},
    {"hbm.t_rcd_read", "200ns", "core", "memory", Way::up, kSmallL2},
    {"hbm.t_rcd_write", "2us", "core", "memory", Way::up, kSmallL2},
    {"hbm.t_rp", "200ns", "core", "memory", Way::up, kSmallL2},
    {"hbm.t_ras", "1us", "core", "memory", Way::up, kSmallL2},
    {"hbm.t_rc", "1us", "core", "memory", Way::up, kSmallL2},
    {"hbm.t_ccd_s", "20ns", "core", "memory", Way::up, kSmallL2},
    {"hbm.t_ccd_l", "40ns", "core", "memory", Way::up, kSmallL2},
    {"hbm.t_rrd_s", "500ns", "core", "memory", Way::up, kSmallL2},
    {"hbm.t_rrd_l", "500ns", "core", "memory", Way::up, kSmallL2},
    {"hbm.t_faw", "2us", "core", "memory", Way::up, kSmallL2},
    {"hbm.t_wr", "1us", "core", "memory", Way::up, kSmallL2},
    {"hbm.t_wtr_s", "1us", "core", "memory", Way::up, kSmallL2},
    {"hbm.t_wtr_l", "1us", "core", "memory", Way::up, kSmallL2},
    {"hbm.t_rtp", "1us", "core", "memory", Way::up, kSmallL2},
    {"hbm.read_latency", "500ns", "core", "memory", Way::up, kSmallL2},
    {"hbm.write_latency", "2us", "core", "memory", Way::up, kSmallL2},
    {"hbm.t_refi", "1us", "stream 64x2048", "bandwidth", Way::down, "hbm.refresh=all-bank"},
    {"hbm.t_rfc_bank", "500ns", "stream 64x2048", "bandwidth", Way::down},
    {"hbm.t_rfc_all", "2us", "stream 64x2048", "bandwidth", Way::down, "hbm.refresh=all-bank"},

    {"topology.nodes", "1", "dispatch strided", "kernel", Way::down},
    {"topology.dies_per_node", "4", "dispatch", "kernel", Way::up},
    {"topology.sockets_per_node", "0", "p2p read cpu", "latency", Way::refused},
    {"topology.sub_planes", "3", "p2p read npu", "bandwidth", Way::down},
    {"topology.l2_switches", "1", "dispatch nodes", "kernel", Way::up, kSlowLinks},
    {"ub.link.bandwidth", "7GB/s", "p2p read npu", "bandwidth", Way::down},
    {"ub.link.endpoint_latency", "300ns", "p2p read npu", "latency", Way::up},
    {"ub.link.trunk_latency", "300ns", "p2p read npu inter", "latency", Way::up},
    {"ub.link.lanes", "4", "p2p write npu inter", "bandwidth", Way::up, "ub.link.buffer_cells=16"},
    {"ub.link.buffer_cells", "8", "p2p read npu", "bandwidth", Way::down},
    {"ub.link.retry_turnaround", "2us", "dispatch corrupted", "kernel", Way::up},
    {"ub.link.retry_timeout", "40us", "dispatch lost", "kernel", Way::up},
    {"ub.switch.pipeline_latency", "300ns", "p2p read npu", "latency", Way::up},
    {"ub.switch.forwarding", "packet-store", "p2p write npu", "latency", Way::up},
    {"ub.switch.routing", "flow", "dispatch nodes", "kernel", Way::either, kSlowLinks},
    {"ub.controller.read_outstanding", "100", "p2p read npu", "bandwidth", Way::down},
    {"ub.controller.write_outstanding", "100", "p2p write npu", "bandwidth", Way::down},
    {"ub.controller.read_interval", "10ns", "p2p read npu", "bandwidth", Way::down},
    {"ub.controller.write_interval", "10ns", "p2p write npu", "bandwidth", Way::down},
    {"ub.controller.read_inbound_latency", "300ns", "p2p read npu", "latency", Way::up},
    {"ub.controller.write_inbound_latency", "900ns", "p2p write npu", "latency", Way::up},
    {"ub.controller.completion_latency", "300ns", "p2p read npu", "latency", Way::up},
    {"ub.controller.target_read_interval", "10ns", "p2p read npu", "bandwidth", Way::down},
    {"ub.controller.target_write_interval", "10ns", "p2p write npu", "bandwidth", Way::down},
    {"ub.controller.spreading", "flow", "p2p read npu", "bandwidth", Way::down},
    {"ub.translation.page", "4KiB", "dispatch", "kernel", Way::up},
    {"ub.translation.entries", "8", "dispatch", "kernel", Way::up},
    {"ub.translation.ways", "1", "dispatch", "kernel", Way::up, "ub.translation.entries=16"},
    {"ub.translation.walks", "1", "dispatch", "kernel", Way::up},
    {"ub.translation.miss_latency", "5us", "dispatch", "kernel", Way::up},

    {"cpu.bandwidth", "40GB/s", "p2p read cpu", "bandwidth", Way::down},
    {"cpu.memory_bytes", "1MiB", "p2p read cpu", "bandwidth", Way::refused},
    {"cpu.memory_bandwidth", "20GB/s", "p2p read cpu", "bandwidth", Way::down},
    {"cpu.memory_read_latency", "500ns", "p2p read cpu", "latency", Way::up},
    {"cpu.memory_write_latency", "500ns", "p2p write cpu", "latency", Way::up},
    {"cpu.controller.read_inbound_latency", "500ns", "p2p read cpu", "latency", Way::up},
    {"cpu.controller.write_inbound_latency", "900ns", "p2p write cpu", "latency", Way::up},
    {"cpu.controller.target_read_interval", "20ns", "p2p read cpu", "bandwidth", Way::down},
    {"cpu.controller.target_write_interval", "20ns", "p2p write cpu", "bandwidth", Way::down},
    {"package_link.bandwidth", "20GB/s", "p2p read sibling-die", "bandwidth", Way::down},
    {"package_link.latency", "500ns", "p2p read sibling-die", "latency", Way::up},
    {"package_link.header", "256B", "p2p read sibling-die", "bandwidth", Way::down,
     "package_link.bandwidth=20GB/s"},
};

constexpr std::string_view kNoSocketInitiates = "no program runs on a CPU socket: it is a target only";
constexpr Exempt kExempt[] = {
    {"die.peak_bf16_tflops", "a reference for utilisations, no mechanism; `machine show` prints it"},
    {"die.peak_int8_tops", "as die.peak_bf16_tflops"},
    {"l2.line", "its range is the one value 512 B"},
    {"cpu.controller.read_outstanding", kNoSocketInitiates},
    {"cpu.controller.write_outstanding", kNoSocketInitiates},
    {"cpu.controller.read_interval", kNoSocketInitiates},
    {"cpu.controller.write_interval", kNoSocketInitiates},
    {"cpu.controller.completion_latency", kNoSocketInitiates},
    {"cpu.controller.spreading", kNoSocketInitiates},
};

constexpr std::array<std::string_view, 27> kVectorRows{
    "add",     "mul",      "adds",   "muls",        "max",        "maxs",      "div",
    "unary",   "exp",      "ln",     "sqrt",        "rsqrt",      "logic",     "copy",
    "madd",    "shift",    "cast",   "reduce_add",  "reduce_max", "group_add", "group_max",
    "compare", "compares", "select", "gather_mask", "broadcast",  "gather"};

}  // namespace

std::span<const Knob> knobs() {
  return kKnobs;
}
std::span<const Exempt> exempt_knobs() {
  return kExempt;
}
std::span<const std::string_view> vector_rows() {
  return kVectorRows;
}

}  // namespace cm384::testing
