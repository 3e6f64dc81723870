// The commands of cm384, one file each or a few alike; commands.cpp lists them.
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include "app/cli/command.h"
#include "lab/report/junit.h"

namespace cm384::cli {

extern const Command kRunCommand;
extern const Command kValidateCommand;
extern const Command kMachineListCommand, kMachineShowCommand, kMachineCheckCommand, kMachineReferenceCommand,
    kMachineCountCommand, kMachineStatisticsCommand;
extern const Command kModelListCommand, kModelShowCommand;
extern const Command kCompareCommand;
extern const Command kBaselineCheckCommand, kBaselineUpdateCommand, kBaselineHistoryCommand;
extern const Command kSweepStatusCommand, kSweepResultsCommand, kSweepExportCommand, kSweepTaskCommand,
    kSweepCommand;
extern const Command kSensitivityCommand;
extern const Command kEnsembleBuildCommand, kEnsembleCheckCommand, kEnsembleLearnCommand;
extern const Command kLibraryShowCommand, kLibraryCheckCommand, kLibraryMeasureCommand, kLibraryScaleCommand;
extern const Command kReportCommand;
extern const Command kKernelBuildCommand, kKernelCheckCommand, kRtlBuildCommand;
extern const Command kTraceInfoCommand, kTraceCheckCommand, kTraceConvertCommand, kTraceCutCommand,
    kTraceShapeCommand, kTraceFromRoutingCommand, kTraceFromTimelineCommand;
extern const Command kTraceReplayCommand;
extern const Command kTraceGenerateRoutingCommand, kTraceGenerateTrafficCommand;
extern const Command kSchemaCommand, kCompletionCommand, kManualCommand, kDoctorCommand;

// Every command there is, in groups.
std::span<const CommandGroup> all_commands();
// A program's commands, in the order of their groups.
std::vector<const Command*> commands_of(const Program& program);

// The whole command line, without the program's name. Reports errors on standard error and maps them to exit
// codes.
int run_command_line(const Program& program, const Arguments& arguments);

// Prints to standard output at once. Never throws: a failed write is reported at the end, by exit
// code 5.
void print_now(std::string_view text);

// Not 0 after SIGINT, SIGTERM or SIGHUP; who asks for it ends soon after. Before anybody has asked, and at
// the second signal, a signal ends the program at once, with exit code 130 and no half file.
const volatile std::sig_atomic_t& interrupted();
// Of signals that parents have ignored (nohup), nothing is heard. An output that takes no more (a pipe that
// nobody reads, a file at its limit) is an error of that output, not the end of the program.
void watch_signals();
// Streams that are closed become such as take nothing: no file of the run gets their number.
void open_standard_streams();

}  // namespace cm384::cli
