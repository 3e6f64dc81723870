#include "app/cli/commands.h"

#include <array>

namespace cm384::cli {

namespace {

constexpr std::array kRunning{&kRunCommand, &kReportCommand, &kValidateCommand};
constexpr std::array kMachines{&kMachineListCommand,  &kMachineShowCommand,      &kMachineCheckCommand,
                               &kMachineCountCommand, &kMachineReferenceCommand, &kMachineStatisticsCommand};
constexpr std::array kModels{&kModelListCommand, &kModelShowCommand};
constexpr std::array kComparing{&kCompareCommand, &kBaselineCheckCommand, &kBaselineUpdateCommand,
                                &kBaselineHistoryCommand};
constexpr std::array kBuilding{&kKernelBuildCommand, &kKernelCheckCommand, &kRtlBuildCommand};
constexpr std::array kTraces{&kTraceInfoCommand,
                             &kTraceCheckCommand,
                             &kTraceConvertCommand,
                             &kTraceCutCommand,
                             &kTraceShapeCommand,
                             &kTraceFromRoutingCommand,
                             &kTraceFromTimelineCommand,
                             &kTraceReplayCommand,
                             &kTraceGenerateRoutingCommand,
                             &kTraceGenerateTrafficCommand};
constexpr std::array kManyRuns{
    &kSweepStatusCommand, &kSweepResultsCommand,  &kSweepExportCommand,    &kSweepTaskCommand,
    &kSweepCommand,  // after those that begin with the same word
    &kSensitivityCommand, &kEnsembleBuildCommand, &kEnsembleCheckCommand,  &kEnsembleLearnCommand,
    &kLibraryShowCommand, &kLibraryCheckCommand,  &kLibraryMeasureCommand, &kLibraryScaleCommand};
constexpr std::array kAbout{&kDoctorCommand, &kSchemaCommand, &kCompletionCommand, &kManualCommand};

constexpr std::array kGroups{
    CommandGroup{"Run the machine", kRunning},
    CommandGroup{"Machines, their parameters and counters", kMachines},
    CommandGroup{"Language models", kModels},
    CommandGroup{"Kernels and chips of your own", kBuilding},
    CommandGroup{"What moved", kComparing},
    CommandGroup{"Traces of traffic and of routing", kTraces},
    CommandGroup{"Many runs, unknown parameters, measured libraries", kManyRuns},
    CommandGroup{"This program", kAbout},
};

}  // namespace

std::span<const CommandGroup> all_commands() {
  return kGroups;
}

}  // namespace cm384::cli
