// `cm384 run ems`: the elastic memory service by itself, without a service in front of it.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text/error.h"
#include "ub_fabric/planes/vpc/vpc_plane.h"
#include "workloads/contexts/ems_model.h"
#include "workloads/contexts/ems_read.h"
#include "workloads/contexts/ems_vpc.h"
#include "workloads/frame/request_options.h"
#include "workloads/service/block_pool.h"
#include "workloads/studies.h"

namespace cm384::studies {
namespace {

// Of a token in the cache of 61 layers: 576 elements of BF16 each ([P] 4.3.3).
constexpr std::int64_t kContextTokenBytes = 576 * 2 * 61;

struct EmsOptions {
  RequestOptions requests;
  double rate = 0;
  Sizes dram{1024_GiB, 4096_GiB, 16384_GiB};
  Bytes evs{}, obs{};
  int servers = 0;
  int tenants = 1;
  Integers readers;
  int reader_nodes = 0;
  vpc::Parameters vpc;
  ModelCache model;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    RequestOptions::describe(self.requests, visit);
    visit("rate", self.rate, RequestOptions::kRates, RequestOptions::kRateText);
    constexpr Bytes kMost{std::int64_t{512} << 50};  // 512 PiB
    visit("dram", self.dram, Range{0_B, kMost}, "of all servers together for blocks; one row each");
    visit("evs", self.evs, Range{0_B, kMost}, "SSD of all servers together, for blocks that leave DRAM");
    visit("obs", self.obs, Range{0_B, kMost},
          "object store behind all servers, for blocks that leave the SSDs");
    visit("servers", self.servers, Range{0, 100'000}, "that blocks are hashed to; 0: one per CPU socket");
    visit("tenants", self.tenants, Range{1, 1'000'000},
          "that sessions or requests belong to in turn; none reads another's blocks");
    visit("readers", self.readers, Range{1, kMostRanks},
          "dies that read a block each at the same time, through the Unified Bus and the VPC; one row each");
    visit("reader-nodes", self.reader_nodes, Range{0, 48},
          "first nodes of the machine that readers are on; 0: all", Needs{"readers", {}});
    vpc::Parameters::describe(self.vpc, visit);
    ModelCache::describe(self.model, visit);
  }
};

Row hits_row(const EmsOptions& options, const service::RequestTrace& trace, int servers, Bytes dram) {
  const std::int64_t block_bytes = kContextTokenBytes * trace.block_tokens;
  service::BlockPool pool(
      {servers, dram.count / block_bytes, options.evs.count / block_bytes, options.obs.count / block_bytes});
  std::int64_t tokens = 0, cached = 0;
  for (const service::Request& request : trace.requests) {
    const auto keys = trace.blocks_of(request);
    const auto tenant = request.session % static_cast<std::uint32_t>(options.tenants);
    const service::PrefixHits hits = pool.read(keys, tenant);
    pool.write(keys, tenant);
    tokens += request.prompt;
    // The last token is computed in any case: the first of the answer comes of it.
    cached += std::min<std::int64_t>(hits.all() * trace.block_tokens, request.prompt - 1);
  }
  const service::PoolCounts& counts = pool.counts();
  const auto share = [&](std::int64_t blocks) {
    return counts.asked == 0 ? 0 : static_cast<double>(blocks) / static_cast<double>(counts.asked);
  };
  Row row{{"kind", "hits"}, {"dram", dram.count}, {"evs", options.evs.count}};
  row.set("obs", options.obs.count).set("servers", servers);
  row.set("requests", trace.requests.size()).set("blocks", counts.asked);
  row.set("hit_rate", Row{{"dram", share(counts.dram_hits)},
                          {"evs", share(counts.ssd_hits)},
                          {"obs", share(counts.store_hits)},
                          {"all", share(counts.dram_hits + counts.ssd_hits + counts.store_hits)}});
  row.set("token_share", static_cast<double>(cached) / static_cast<double>(tokens));
  row.set("written", counts.written).set("kept_once", counts.kept_once);
  row.set("demoted", pool.demoted()).set("promoted", pool.promoted());
  row.set("stored", pool.stored()).set("restored", pool.restored()).set("dropped", pool.dropped());
  return row;
}

Row read_row(const char* path, const std::string& tier, int readers, Bytes bytes,
             const std::vector<double>& latency_us) {
  const Summary summary = summarise(latency_us);
  return {{"kind", "read"},
          {"path", path},
          {"readers", readers},
          {"tier", tier},
          {"bytes", bytes.count},
          {"simulated", true},
          {"latency_us", to_row(summary)},
          {"bandwidth_GBps", static_cast<double>(bytes.count) / (summary.mean * 1e3)}};
}

void add_reads(const StudyContext& context, const EmsOptions& options, StudyResult& result) {
  if (options.readers.empty()) return;
  vpc::check(options.vpc);
  const Bytes bytes{kContextTokenBytes * options.requests.block};
  for (std::size_t k = 0; k < options.readers.size(); ++k) {
    const int readers = options.readers[k];
    const auto part = [&](double done) {
      return (static_cast<double>(k) + done) / static_cast<double>(options.readers.size());
    };
    // The kernel that reads over the Unified Bus reads DRAM.
    const bool bus = options.vpc.first_tier() == vpc::Tier::dram;
    const double vpc_from = bus ? 0.9 : 0;  // by what the two take
    const BlockPlaces places = place_block_reads(context, readers, options.reader_nodes);
    const auto add = [&](const char* path, const std::vector<double>& latency_us, const Row& more) {
      if (latency_us.empty()) {
        result.complete = false;
        return;
      }
      Row row = read_row(path, options.vpc.tier, readers, bytes, latency_us);
      row.set("servers", places.servers).set("most_at_a_server", places.most_at_a_server);
      row.append(more);
      context.finish_row(result, std::move(row));
    };
    if (bus) {
      PartOfProgress progress(context.progress, part(0), part(vpc_from), result.simulator);
      add("ub", measure_block_reads(context.with(progress), places, bytes, result.simulator), {});
      if (!result.complete) return;
    }
    PartOfProgress progress(context.progress, part(vpc_from), part(1), result.simulator);
    const VpcReads reads =
        measure_vpc_reads(context.with(progress), options.vpc, places, bytes, result.simulator);
    add("vpc", reads.latency_us,
        {{"readers_of_a_card", reads.readers_of_a_card},
         {"blocks_of_a_card", reads.blocks_of_a_card},
         {"inward", reads.inward},
         {"outward", reads.outward}});
    if (!result.complete) return;
  }
  if (options.vpc.first_tier() != vpc::Tier::dram)
    result.notes.push_back(
        fmt::format("no rows of ub: its kernel reads DRAM, and the blocks are on {}", options.vpc.tier));
  result.notes.push_back(fmt::format(
      "rows of vpc are simulated with {:.0f} GB/s x {:.2f} of a node's card each way; the share and all "
      "latencies of the plane are assumptions",
      static_cast<double>(options.vpc.rate.bytes_per_second) * 1e-9, options.vpc.share));
}

StudyResult run(const StudyContext& context, const EmsOptions& options) {
  StudyResult result;
  if (!options.requests.requests.empty() || options.requests.reuse > 0) {
    const service::RequestTrace trace = options.requests.load(context, "ems", context.seed, options.rate);
    if (trace.keys.empty())
      throw InputError(
          fmt::format("run ems: --requests {}: its requests have no blocks (hash_ids or input_tok_ids of a "
                      "whole block) that a cache could have",
                      options.requests.requests));
    if (!options.requests.requests.empty()) result.input_files.push_back(options.requests.requests);
    result.notes.push_back(RequestOptions::note_of(trace));
    const hw::Topology& topology = context.machine.topology;
    const int sockets = std::max(1, topology.nodes * topology.sockets_per_node);
    const int servers = options.servers == 0 ? sockets : options.servers;
    const Bytes block{kContextTokenBytes * trace.block_tokens};
    const auto add_note = [&](std::string note) {
      if (!note.empty()) result.notes.push_back(std::move(note));
    };
    add_note(service::note_of_room("--evs", options.evs, block, servers));
    for (const Bytes dram : options.dram) {
      add_note(service::note_of_room("--dram", dram, block, servers));
      context.finish_row(result, hits_row(options, trace, servers, dram));
    }
  } else if (options.readers.empty() && options.model.weights.count == 0) {
    throw InputError(
        "run ems: allowed: --requests FILE, --reuse SHARE, --readers N or --model SIZE, or several of them");
  }
  add_reads(context, options, result);
  add_model_rows(context, options.model, result);
  return result;
}

constexpr std::array kRates{
    Field{"dram", FieldType::ratio, "from DRAM", true},
    Field{"evs", FieldType::ratio, "from SSD", true},
    Field{"obs", FieldType::ratio, "from the object store", true},
    Field{"all", FieldType::ratio, "from any of them", true},
};
constexpr std::array kEmsFields{
    Field{"kind", FieldType::text, "hits of requests, reads of blocks, or starts with a model", true}
        .as_condition(),
    Field{
        "path",
        FieldType::text,
        "of reads: ub or vpc; of models: obs, from the store each; obs-ems, into DRAM for all; ems, from "
        "DRAM; obs-local and ems-change, the mean of one's changes with a cache of its own, and with DRAM of "
        "all",
        true,
        {},
        9}
        .as_condition(),
    Field{"readers", FieldType::integer, "dies that read at the same time", true}.as_condition(),
    Field{"tier", FieldType::text, "of reads: where the blocks were", true, {}, 4}.as_condition(),
    Field{"simulated", FieldType::boolean, "packet by packet, of models block by block"}.as_condition(),
    Field{"dram", FieldType::bytes, "for blocks, of all servers", true}.as_condition(),
    Field{"evs", FieldType::bytes, "SSD behind it", true}.as_condition(),
    Field{"obs", FieldType::bytes, "object store behind that", true}.as_condition(),
    Field{"servers", FieldType::integer, "that blocks are hashed to; of reads: that have one of them", true}
        .as_condition(),
    Field{"most_at_a_server", FieldType::integer, "readers of one server"},
    Field{"readers_of_a_card", FieldType::integer, "at most: dies of one node that read"},
    Field{"blocks_of_a_card", FieldType::integer, "at most: that the sockets of one node serve"},
    Field{"requests", FieldType::integer, "whose blocks were asked for"},
    Field{"blocks", FieldType::integer, "asked for"},
    Field{"hit_rate", FieldType::object,
          "blocks found behind nothing but found ones, of those asked for; of models any", true, kRates},
    Field{"token_share", FieldType::ratio, "tokens of prompts that need not be computed"},
    Field{"written", FieldType::integer, "blocks that were new"},
    Field{"kept_once", FieldType::integer, "blocks computed that were there already"},
    Field{"demoted", FieldType::integer, "blocks from DRAM to SSD"},
    Field{"promoted", FieldType::integer, "blocks from SSD to DRAM"},
    Field{"stored", FieldType::integer, "blocks from SSD, or from DRAM without one, to the object store"},
    Field{"restored", FieldType::integer, "blocks from there to DRAM"},
    Field{"dropped", FieldType::integer, "blocks that left the last tier"},
    Field{"instances", FieldType::integer, "that start with a model"}.as_condition(),
    Field{"bytes", FieldType::bytes, "of a block, or of a model", true}.as_condition(),
    Field{"start_s", FieldType::number, "until the last of these has its weights; of changes the mean", true},
    Field{"latency_us", FieldType::object, "of a block's read, over readers; on ub by all AIVs of each", true,
          kSummaryParts},
    Field{"bandwidth_GBps", FieldType::number, "of a reader", true},
    Field{"inward", FieldType::ratio, "share of the time in which the busiest card took in packets", true},
    Field{"outward", FieldType::ratio, "share of the time in which the busiest card sent packets", true},
};

}  // namespace

const Study kEmsStudy{"ems", "the memory service of cached contexts: hits of requests, reads of blocks",
                      kEmsFields, options_of<EmsOptions, run>, true};

}  // namespace cm384::studies
