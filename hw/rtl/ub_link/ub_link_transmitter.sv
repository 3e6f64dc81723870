// The sending half of a link's end: packets in, flits out.
module ub_link_transmitter #(
    // Ranges and meaning: see ub_link.
    parameter int unsigned FlitBytes = 20,
    parameter int unsigned BlockFlits = 32,
    parameter int unsigned Lanes = 2,
    parameter int unsigned CellFlits = 8,
    parameter int unsigned LaneCells = 256,
    parameter int unsigned CreditGrain = 4,
    parameter int unsigned RetryFlits = 1024,
    localparam int unsigned FlitBits = 8 * FlitBytes
) (
    input  logic                                  clk_i,
    input  logic                                  rst_ni,
    // Packets and their content; see ub_packet_picker and ub_framer.
    input  logic                 [     Lanes-1:0] packet_valid_i,
    input  logic                 [  14*Lanes-1:0] packet_length_i,
    input  logic                 [   4*Lanes-1:0] packet_format_i,
    input  logic                 [   2*Lanes-1:0] packet_route_i,
    output logic                 [     Lanes-1:0] packet_take_o,
    output logic                 [           3:0] data_lane_o,
    output logic                                  data_take_o,
    input  logic                 [  FlitBits-1:0] data_i,
    // From and to the receiving half.
    input  ub_link_pkg::returns_t                 returns_i,
    output ub_link_pkg::taken_t                   taken_o,
    input  ub_link_pkg::arrived_t                 arrived_i,
    input  ub_link_pkg::retry_t                   retry_i,
    // The wire.
    output logic                                  flit_valid_o,
    output logic                 [  FlitBits-1:0] flit_o,
    input  logic                                  flit_ready_i,
    output logic                                  asked_o,
    output logic                                  replayed_o,
    output logic                                  idle_o
);
  logic [16*Lanes-1:0] credits;
  logic [Lanes-1:0] grown;
  logic spend;
  logic [3:0] spend_lane;
  logic [15:0] spend_cells;
  ub_lane_credits #(
      .Lanes(Lanes),
      .LaneCells(LaneCells),
      .CreditGrain(CreditGrain)
  ) i_credits (
      .clk_i,
      .rst_ni,
      .spend_i(spend),
      .spend_lane_i(spend_lane),
      .spend_cells_i(spend_cells),
      .header_i(arrived_i.header_credit),
      .header_lane_i(arrived_i.credit_lane),
      .block_i(arrived_i.block_credit),
      .block_cells_i(arrived_i.cells),
      .credits_o(credits),
      .grown_o(grown)
  );

  logic packet_valid, packet_take;
  ub_link_pkg::packet_t packet;
  logic [3:0] packet_lane;
  ub_packet_picker #(
      .Lanes(Lanes),
      .FlitBytes(FlitBytes),
      .BlockFlits(BlockFlits),
      .CellFlits(CellFlits),
      .LaneCells(LaneCells)
  ) i_picker (
      .clk_i,
      .rst_ni,
      .valid_i(packet_valid_i),
      .length_i(packet_length_i),
      .format_i(packet_format_i),
      .route_i(packet_route_i),
      .take_o(packet_take_o),
      .credits_i(credits),
      .grown_i(grown),
      .spend_o(spend),
      .spend_lane_o(spend_lane),
      .spend_cells_o(spend_cells),
      .packet_valid_o(packet_valid),
      .packet_o(packet),
      .packet_lane_o(packet_lane),
      .packet_take_i(packet_take)
  );

  logic room, last_room, framed, framed_last;
  logic [FlitBits-1:0] framed_flit;
  ub_framer #(
      .FlitBytes (FlitBytes),
      .BlockFlits(BlockFlits)
  ) i_framer (
      .clk_i,
      .rst_ni,
      .packet_valid_i(packet_valid),
      .packet_i(packet),
      .packet_lane_i(packet_lane),
      .packet_take_o(packet_take),
      .data_lane_o,
      .data_take_o,
      .data_i,
      .returns_i,
      .header_acknowledge_o(taken_o.header_acknowledge),
      .header_credit_o(taken_o.header_credit),
      .block_returns_o(taken_o.block),
      .room_i(room),
      .last_room_i(last_room),
      .flit_valid_o(framed),
      .flit_o(framed_flit),
      .flit_last_o(framed_last)
  );

  logic next_valid, next_last, take, rewind, rewindable;
  logic [FlitBits-1:0] next_flit;
  ub_link_pkg::position_t rewind_to;
  ub_retry_buffer #(
      .RetryFlits(RetryFlits),
      .BlockFlits(BlockFlits),
      .FlitBits  (FlitBits)
  ) i_retry (
      .clk_i,
      .rst_ni,
      .write_i(framed),
      .write_flit_i(framed_flit),
      .write_last_i(framed_last),
      .room_o(room),
      .last_room_o(last_room),
      .acknowledged_i(arrived_i.acknowledged),
      .next_valid_o(next_valid),
      .next_flit_o(next_flit),
      .next_last_o(next_last),
      .take_i(take),
      .rewind_i(rewind),
      .rewind_to_i(rewind_to),
      .rewindable_o(rewindable)
  );

  ub_wire_sender #(
      .FlitBits(FlitBits)
  ) i_wire (
      .clk_i,
      .rst_ni,
      .retry_i,
      .next_valid_i(next_valid),
      .next_flit_i(next_flit),
      .next_last_i(next_last),
      .take_o(take),
      .rewind_o(rewind),
      .rewind_to_o(rewind_to),
      .rewindable_i(rewindable),
      .flit_valid_o,
      .flit_o,
      .flit_ready_i,
      .asked_o,
      .replayed_o,
      .idle_o
  );
endmodule
