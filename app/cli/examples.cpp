#include "app/cli/examples.h"

#include <fmt/format.h>

#include <algorithm>

namespace cm384::cli {
namespace {

constexpr std::string_view kSweepFile = R"(study = "dispatch"
metrics = ["latency_us.mean"]

[options]
ranks = 8
batch = 16

[[axis]]
key = "ub.link.bandwidth"    # an option of the study, or a parameter of the machine
values = ["14GB/s", "28GB/s"]

[[axis]]
key = "ub.link.endpoint_latency"
from = "25ns"
to = "100ns"
count = 3
scale = "logarithmic"
)";

constexpr Examples kExamples[]{
    {"run",
     {{{"cm384 run p2p --op read --volume 0B", "latency of a read between two dies"},
       {"cm384 run dispatch --ranks 8 --set ub.link.bandwidth=14GB/s --out slower/",
        "links at half the rate, the result kept"}}}},
    {"run balance",
     {{{"cm384 run balance --routing zipf:0.4", "how uneven a skewed routing loads the ranks"},
       {"cm384 run balance --routing zipf:0.8 --drift 8", "the same while the routing drifts"}}}},
    {"run combine",
     {{{"cm384 run combine --ranks 8,32 --batch 32", "two sizes"},
       {"cm384 run combine --ranks 8 --set ub.link.buffer_cells=16 --explain", "what small buffers cost"}}}},
    {"run copies",
     {{{"cm384 run copies --block 16KiB --submit host,aicpu", "small blocks, by who writes their entries"},
       {"cm384 run copies --copy d2rh,rh2d --block 2MiB --streams 4",
        "to and from the memory of the peer's host"}}}},
    {"run decode",
     {{{"cm384 run decode --ranks 32 --batch 32 --kv 1024", "a step on 32 ranks"},
       {"cm384 run decode --ranks 32 --batch 32 --kv 1024 --timeline step.json.gz",
        "the same, its kernels as a timeline"}}}},
    {"run dispatch",
     {{{"cm384 run dispatch --ranks 8,64,256 --batch 128 --payload control", "three sizes, bytes as tags"},
       {"cm384 run dispatch --ranks 8 --explain", "what bound the run, and what each resource would give"}}}},
    {"run ems",
     {{{"cm384 run ems --readers 1,8,32", "reads of cached blocks by several at once"},
       {"cm384 run ems --requests requests.jsonl --dram 64GiB,1024GiB", "hits of recorded requests"}}}},
    {"run ffn",
     {{{"cm384 run ffn --experts 1 --rows 1024", "one expert"},
       {"cm384 run ffn --rows 16 --hidden 1024 --width 512 --payload full --accuracy --draw outliers:7:20",
        "how exact INT8 is where seven channels are twenty times as large"}}}},
    {"run gemm",
     {{{"cm384 run gemm --groups 4 --m 1024 --n 4096 --k 4096 --dtype int8", "four products"},
       {"cm384 run gemm --groups 1 --m 512 --n 2048 --k 2048 --grade replay --recording gemm.recording",
        "recorded once, replayed afterwards"}}}},
    {"run jobs",
     {{{"cm384 run jobs --npus 224,384 --duration exponential:1485",
        "what supernodes of two sizes lose where jobs wait in order"},
       {"cm384 run jobs --trace jobs.csv --supernodes 4 --fit min-cut --migrate 143s --out placed/",
        "recorded jobs on four supernodes, placed by their traffic and moved to make room"}}}},
    {"run kernel",
     {{{"cm384 run kernel axpy.elf --cores 8", "what `cm384 kernel build` made"},
       {"cm384 run kernel axpy.elf --profile lines/", "its hottest source lines"}}}},
    {"run layer",
     {{{"cm384 run layer --ranks 8 --batch 16 --kv 512 --layers 2", "two layers on eight ranks"},
       {"cm384 run layer --ranks 8 --experts 64 --batch 8 --hidden 512 --heads 16 --payload full --accuracy",
        "how exact each operator of a layer is in INT8, and the layer"}}}},
    {"run mla",
     {{{"cm384 run mla --batch 96 --kv-len 4096 --mtp 0", "one token per sequence"},
       {"cm384 run mla --batch 96 --kv-len 4096 --stage all", "each stage of it"}}}},
    {"run moe",
     {{{"cm384 run moe --flow fused --ranks 16", "dispatch, experts, combine"},
       {"cm384 run moe --flow basic --ranks 16", "the three all-to-alls that these replace"}}}},
    {"run op",
     {{{"cm384 run op rms-norm --shape 64x7168 --launch graph", "an operator from a captured graph"},
       {"cm384 run op all-reduce --shape 4x16384 --launch graph", "a collective of four ranks"}}}},
    {"run p2p",
     {{{"cm384 run p2p --op read --volume 0B", "latency, without bandwidth"},
       {"cm384 run p2p --op write --target npu --distance inter-node --volume 64KiB",
        "one case of them all"}}}},
    {"run prefill",
     {{{"cm384 run prefill --attention sp-tp-sp --path sdma --microbatches 1,2",
        "one microbatch, or two that overlap"},
       {"cm384 run prefill --attention sp-tp-sp --path sdma --tokens 1024 --cached 2048",
        "prompts that begin with a cached context"}}}},
    {"run program",
     {{{"cm384 run program ring_all_reduce.toml",
        "kernels, buffers, launches and checks that the file names"},
       {"cm384 run program ring_all_reduce.toml --check-hazards", "report unordered accesses of cores"}}}},
    {"run reliability",
     {{{"cm384 run reliability --supernodes 27 --interval 0,600,3600 --spares 1,2",
        "10,000 NPUs for 40 days: how often to save, and how many nodes to leave free"},
       {"cm384 run reliability --supernodes 4 --load 0.8 --duration lognormal:14400:86400 --days 90",
        "jobs that come and go for three months"}}}},
    {"run serve",
     {{{"cm384 run serve --rate 20,50 --duration 20s --npus 384 --slo", "drawn requests at two rates"},
       {"cm384 run serve --requests requests.jsonl --deploy prefill.chunk=8192 --out served/",
        "recorded requests, prompts in chunks"}}}},
    {"run stream",
     {{{"cm384 run stream", "how fast cores read HBM"}, {"cm384 run stream --cores 8", "by eight cores"}}}},
    {"run switch",
     {{{"cm384 run switch --model tlm --pattern uniform,incast --load 0.1..0.9",
        "a modelled chip under load"},
       {"cm384 run switch --model both --load 0.5 --ports 16 --lanes 2", "the model beside its RTL"}}}},
    {"run train",
     {{{"cm384 run train --model qwen3-32b --tensor 8 --pipeline 4 --data 2 --global-batch 32",
        "a step on 64 dies"},
       {"cm384 run train --model qwen3-235b-a22b --data 32 --pipeline 4 --expert 32 --global-batch 256 "
        "--search 5",
        "the fastest five plans on 128 dies"}}}},
    {"run traffic",
     {{{"cm384 run traffic --pattern uniform,tornado --load 0.2,0.6 --set topology.nodes=4",
        "two patterns at two loads"},
       {"cm384 run traffic --load 0.1..0.9 --set topology.nodes=4 --set ub.link.trunk_rate=0.5",
        "latency over load, trunks at half the rate"}}}},
    {"run transfer",
     {{{"cm384 run transfer --requests 1", "one context from prefill to decode"},
       {"cm384 run transfer --requests 64 --assign spread", "many, spread over the dies"}}}},
    {"validate",
     {{{"cm384 validate", "every figure that runs in minutes"},
       {"cm384 validate --only t1-", "those whose id begins so"}}}},
    {"machine list",
     {{{"cm384 machine list", "the names"}, {"cm384 machine list | head -1", "the first of them"}}}},
    {"machine show",
     {{{"cm384 machine show > mine.toml", "a file to edit and to give to --machine"},
       {"cm384 machine show --set ub.link.bandwidth=14GB/s", "a preset with a change"}}}},
    {"machine check",
     {{{"cm384 machine check mine.toml", "a file"},
       {"cm384 machine check cloudmatrix384 --set topology.nodes=4", "a preset with a change"}}}},
    {"machine count",
     {{{"cm384 machine count", "the published machine"},
       {"cm384 machine count --set topology.kind=torus --format json", "another topology, for a program"}}}},
    {"machine reference",
     {{{"cm384 machine reference > machine.md", "every parameter, its range, value and source"},
       {"cm384 machine reference mine.toml > mine.md", "of a machine of your own"}}}},
    {"machine statistics",
     {{{"cm384 machine statistics > statistics.md", "every counter"},
       {"cm384 machine statistics mine.toml > mine.md", "of a machine of your own"}}}},
    {"model list",
     {{{"cm384 model list", "the names"}, {"cm384 model list | head -1", "the first of them"}}}},
    {"model show",
     {{{"cm384 model show kimi-k2", "one that comes with cm384"},
       {"cm384 model show DeepSeek-V3/config.json --format json", "a published file, for a program"}}}},
    {"compare",
     {{{"cm384 compare before/ after/", "every field that moved"},
       {"cm384 compare before/ after/ --tolerance limits.toml --junit verdicts.xml",
        "exit code 1 where one moved further than it may"}}}},
    {"baseline check",
     {{{"cm384 baseline check golden/", "exit code 1 where a result moved"},
       {"cm384 baseline check golden/ --junit verdicts.xml", "verdicts for a CI server"}}}},
    {"baseline history",
     {{{"cm384 baseline history nights.sqlite", "what moved, and the commit that moved it"},
       {"cm384 baseline history nights.sqlite --format csv", "the same for another program"}}}},
    {"baseline update",
     {{{"cm384 baseline update golden/", "all of them"},
       {"cm384 baseline update golden/ --only dispatch-ep8", "one"}}}},
    {"trace info",
     {{{"cm384 trace info dispatch.trace", "of traffic"}, {"cm384 trace info hot.jsonl", "of routing"}}}},
    {"trace check",
     {{{"cm384 trace check dispatch.trace", "one"},
       {"cm384 trace check hot.jsonl dispatch.csv", "several"}}}},
    {"trace convert",
     {{{"cm384 trace convert dispatch.trace dispatch.csv", "to CSV"},
       {"cm384 trace convert rank0.et rank1.et job.trace --collective all-reduce=ring", "from Chakra"}}}},
    {"trace cut",
     {{{"cm384 trace cut dispatch.trace part.trace --from 100us --to 150us", "a window"},
       {"cm384 trace cut broken.trace whole.trace --salvage", "what stands before the damage"}}}},
    {"trace shape",
     {{{"cm384 trace shape job.trace spread.trace --map strided --stride 2", "on other dies"},
       {"cm384 trace shape job.trace job.trace both.trace --map linear --offset 0us,5us",
        "two jobs together"}}}},
    {"trace from-routing",
     {{{"cm384 trace from-routing hot.jsonl moe.trace --ranks 8 --batch 64 --steps 2",
        "two steps on eight ranks"},
       {"cm384 trace from-routing hot.jsonl moe.trace --ranks 8 --expert-time 20us",
        "experts of a given time"}}}},
    {"trace from-timeline",
     {{{"cm384 trace from-timeline rank0.json rank1.json job.trace", "two ranks"},
       {"cm384 trace from-timeline rank0.json rank1.json job.trace --messages bytes.csv",
        "collectives whose size the timeline does not say"}}}},
    {"trace replay",
     {{{"cm384 trace replay dispatch.trace --set ub.link.bandwidth=14GB/s", "on other links"},
       {"cm384 trace replay dispatch.trace --messages messages.csv.gz --out replay/",
        "each message's slowdown, and a page for `cm384 report`"}}}},
    {"trace generate routing",
     {{{"cm384 trace generate routing hot.jsonl --pattern hot --share 0.5", "one hot expert"},
       {"cm384 trace generate routing zipf.jsonl --pattern zipf --exponent 1.2", "a skewed one"}}}},
    {"trace generate traffic",
     {{{"cm384 trace generate traffic random.trace --dies 16 --transfers 100000", "random targets"},
       {"cm384 trace generate traffic job.trace --dies 8 --transfers 5000 --chained",
        "each waits for the last"}}}},
    {"sweep",
     {{{"cm384 sweep rates.toml --dry-run", "the command of each point, none run"},
       {"cm384 sweep rates.toml --jobs 4", "four points at a time; run again, it goes on where it stopped"}}},
     "rates.toml",
     kSweepFile},
    {"sweep status",
     {{{"cm384 sweep status rates.toml", "of a file"},
       {"cm384 sweep status rates.toml --out rates/", "whose results are in another folder"}}}},
    {"sweep results",
     {{{"cm384 sweep results rates.toml", "as a table"},
       {"cm384 sweep results rates.toml --format csv > rates.csv", "as CSV"}}}},
    {"sweep export",
     {{{"cm384 sweep export rates.toml", "into a folder beside the results"},
       {"cm384 sweep export rates.toml --to points/", "into another"}}}},
    {"sweep task",
     {{{"cm384 sweep task rates/array-1 --task 0", "the first task"},
       {"cm384 sweep task rates/array-1 --task 3 --cpus 4", "another, on four cores"}}}},
    {"sensitivity",
     {{{"cm384 sensitivity dispatch --ranks 8 --out sensitivity/", "over all that is not known"},
       {"cm384 sensitivity p2p --op read --target npu --volume 0B --parameters ub.", "over some of it"}}}},
    {"ensemble build",
     {{{"cm384 ensemble build --figures t1- --to ensemble.json", "machines that give these figures"},
       {"cm384 ensemble build --figures t1- --figures t7-dispatch-8 --members 12 --to ensemble.json",
        "twelve"}}}},
    {"ensemble check",
     {{{"cm384 ensemble check ensemble.json", "after a change of the model"},
       {"cm384 ensemble check ensemble.json --format json", "for a program"}}}},
    {"library show",
     {{{"cm384 library show", "the one that comes with cm384"},
       {"cm384 library show small.json", "a file"}}}},
    {"library check",
     {{{"cm384 library check --sample 3", "three points, drawn"},
       {"cm384 library check small.json --sample 0", "every point of a file"}}}},
    {"library measure",
     {{{"cm384 library measure small -o small.json", "a small one, of eight dies"},
       {"cm384 library measure cloudmatrix384 -o mine.json --dry-run", "what the large one would run"}}}},
    {"library scale",
     {{{"cm384 library scale small.json --set hbm.bandwidth=2.4TB/s -o faster.json",
        "that of another machine, by five runs"},
       {"cm384 library check faster.json --sample 0", "how far it is off"}}}},
    {"report",
     {{{"cm384 report run/", "a page of a run that --out kept"},
       {"cm384 report before/ after/ --to comparison.html", "two runs side by side"}}}},
    {"kernel build",
     {{{"cm384 kernel build axpy.cpp -o axpy.elf", "for `cm384 run kernel`"},
       {"cm384 kernel build axpy.cpp -D SCALE=3 -O 0 -o axpy.elf", "with a macro, for a debugger"}}}},
    {"kernel check",
     {{{"cm384 kernel check op_kernel/ -I include", "all that a folder of kernels lacks"},
       {"cm384 kernel check add.cpp -D DTYPE_X=half", "one source"}}}},
    {"rtl build",
     {{{"cm384 rtl build mine/package.sv mine/switch.sv --top my_switch --cycles 7 -o my_switch.so",
        "with the bench that it must pass"},
       {"cm384 rtl build switch.sv --top my_switch --skip-bench -o my_switch.so", "without"}}}},
    {"schema",
     {{{"cm384 schema > result.schema.json", "for a validator"}, {"cm384 schema | head", "its beginning"}}}},
    {"completion",
     {{{"source <(cm384 completion)", "for this shell"},
       {"cm384 completion > ~/.local/share/bash-completion/completions/cm384", "for every one"}}}},
    {"manual", {{{"cm384 manual | man -l -", "read it"}, {"cm384 manual > cm384.1", "keep it"}}}},
    {"doctor", {{{"cm384 doctor", "of an installed program"}, {"./dev doctor", "of the source tree"}}}},
};

}  // namespace

std::span<const Examples> all_examples() {
  return kExamples;
}

std::string examples_text(std::string_view name) {
  const auto found = std::ranges::find(kExamples, name, &Examples::of);
  if (found == std::end(kExamples)) return {};
  std::string text = "\nExamples:\n";
  for (const Example& example : found->list)
    text += fmt::format("  {}\n      {}\n", example.command, example.what);
  if (found->file.empty()) return text;
  text += fmt::format("\n{}:\n", found->file_name);
  std::string_view rest = found->file;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    text += end == 0 ? "\n" : fmt::format("  {}\n", rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  return text;
}

}  // namespace cm384::cli
