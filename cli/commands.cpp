#include "cli/commands.h"

#include <array>

namespace cm384::cli {

std::span<const Command* const> all_commands() {
  static const std::array table{
      &kRunCommand,
      &kValidateCommand,
      &kMachineListCommand,
      &kMachineShowCommand,
      &kMachineCheckCommand,
      &kMachineReferenceCommand,
      &kMachineStatisticsCommand,
      &kCompareCommand,
      &kBaselineCheckCommand,
      &kBaselineUpdateCommand,
      &kBaselineHistoryCommand,
      &kTraceInfoCommand,
      &kTraceCheckCommand,
      &kTraceConvertCommand,
      &kTraceCutCommand,
      &kTraceShapeCommand,
      &kTraceFromRoutingCommand,
      &kTraceFromTimelineCommand,
      &kTraceReplayCommand,
      &kTraceGenerateRoutingCommand,
      &kTraceGenerateTrafficCommand,
      &kSweepStatusCommand,
      &kSweepResultsCommand,
      &kSweepExportCommand,
      &kSweepTaskCommand,
      &kSweepCommand,  // after those that begin with the same word
      &kSensitivityCommand,
      &kEnsembleBuildCommand,
      &kEnsembleCheckCommand,
      &kLibraryShowCommand,
      &kLibraryCheckCommand,
      &kLibraryMeasureCommand,
      &kReportCommand,
      &kKernelBuildCommand,
      &kRtlBuildCommand,
      &kSchemaCommand,
      &kCompletionCommand,
      &kManualCommand,
      &kDoctorCommand,
  };
  return table;
}

std::string help_text(const Command& command, std::span<const studies::OptionGroup> groups) {
  return fmt::format("{} [options]: {}\n\n{}", command.usage(), command.summary, studies::help_of(groups));
}

}  // namespace cm384::cli
