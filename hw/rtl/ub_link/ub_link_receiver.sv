// The receiving half of a link's end: flits in, packets out.
module ub_link_receiver #(
    // Ranges and meaning: see ub_link.
    parameter int unsigned FlitBytes = 20,
    parameter int unsigned BlockFlits = 32,
    parameter int unsigned Lanes = 2,
    parameter int unsigned CellFlits = 8,
    parameter int unsigned LaneCells = 256,
    parameter int unsigned CreditGrain = 4,
    parameter int unsigned AckGrain = 32,
    parameter int unsigned AckForce = 512,
    parameter int unsigned ReturnDelay = 256,
    parameter int unsigned RetryTimeout = 1024,
    localparam int unsigned FlitBits = 8 * FlitBytes
) (
    input  logic                                  clk_i,
    input  logic                                  rst_ni,
    // The wire.
    input  logic                                  flit_valid_i,
    input  logic                 [  FlitBits-1:0] flit_i,
    // From and to the sending half.
    output ub_link_pkg::returns_t                 returns_o,
    input  ub_link_pkg::taken_t                   taken_i,
    output ub_link_pkg::arrived_t                 arrived_o,
    output ub_link_pkg::retry_t                   retry_o,
    // Beats of content; see ub_deframer.
    input  logic                 [     Lanes-1:0] receive_ready_i,
    output logic                                  receive_valid_o,
    output logic                 [           3:0] receive_lane_o,
    output ub_link_pkg::packet_t                  receive_packet_o,
    output logic                                  receive_last_o,
    output logic                 [           6:0] receive_bytes_o,
    output logic                 [  FlitBits-1:0] receive_data_o,
    output logic                                  damaged_o
);
  logic write, commit, commit_packet, accepted;
  logic [3:0] write_lane;
  logic [4:0] write_offset;
  logic [5:0] accepted_flits;
  logic [FlitBits-1:0] write_flit;
  ub_block_receiver #(
      .FlitBytes(FlitBytes),
      .BlockFlits(BlockFlits),
      .AckGrain(AckGrain),
      .RetryTimeout(RetryTimeout)
  ) i_blocks (
      .clk_i,
      .rst_ni,
      .flit_valid_i,
      .flit_i,
      .write_o(write),
      .write_lane_o(write_lane),
      .write_offset_o(write_offset),
      .write_flit_o(write_flit),
      .commit_o(commit),
      .commit_packet_o(commit_packet),
      .accepted_o(accepted),
      .accepted_flits_o(accepted_flits),
      .arrived_o,
      .retry_o,
      .damaged_o
  );

  logic [Lanes-1:0] packets, further_packets;
  logic [3:0] show_lane, advance_lane;
  logic advance, finish, freed;
  logic [FlitBits-1:0] flit;
  ub_lane_buffers #(
      .Lanes(Lanes),
      .LaneFlits(LaneCells * CellFlits),
      .FlitBits(FlitBits)
  ) i_buffers (
      .clk_i,
      .rst_ni,
      .write_i(write),
      .write_lane_i(write_lane),
      .write_offset_i(write_offset),
      .write_flit_i(write_flit),
      .commit_i(commit),
      .commit_packet_i(commit_packet),
      .packets_o(packets),
      .further_packets_o(further_packets),
      .show_lane_i(show_lane),
      .flit_o(flit),
      .advance_lane_i(advance_lane),
      .advance_i(advance),
      .finish_i(finish)
  );

  ub_deframer #(
      .FlitBytes(FlitBytes),
      .BlockFlits(BlockFlits),
      .Lanes(Lanes),
      .CellFlits(CellFlits)
  ) i_deframer (
      .clk_i,
      .rst_ni,
      .packets_i(packets),
      .further_packets_i(further_packets),
      .show_lane_o(show_lane),
      .flit_i(flit),
      .advance_lane_o(advance_lane),
      .advance_o(advance),
      .finish_o(finish),
      .freed_o(freed),
      .receive_ready_i,
      .receive_valid_o,
      .receive_lane_o,
      .receive_packet_o,
      .receive_last_o,
      .receive_bytes_o,
      .receive_data_o
  );

  ub_returns #(
      .Lanes(Lanes),
      .CreditGrain(CreditGrain),
      .AckGrain(AckGrain),
      .AckForce(AckForce),
      .ReturnDelay(ReturnDelay)
  ) i_returns (
      .clk_i,
      .rst_ni,
      .accepted_i(accepted),
      .accepted_data_i(commit),
      .accepted_flits_i(accepted_flits),
      .freed_i(freed),
      .freed_lane_i(advance_lane),
      .header_acknowledge_i(taken_i.header_acknowledge),
      .header_credit_i(taken_i.header_credit),
      .block_i(taken_i.block),
      .returns_o
  );
endmodule
