// One end of a Unified Bus data link: packets of up to 16 virtual lanes in, flits out, and back. Packets are cut into
// blocks under a CRC; a damaged block is sent again with all that followed it (Go-Back-N); credits a lane keep the
// other end's buffers from overflowing. Every packet arrives once, and those of a lane in order. Both ends of a link
// have the same parameters and are reset together, with no flit left between them. README.md has the rest.
module ub_link #(
    // Bytes of a flit, even, 20 to 64. The specification has 20.
    parameter int unsigned FlitBytes = 20,
    // Flits of a block, 2 to 32; the specification has 32. A packet has at most 16 blocks.
    parameter int unsigned BlockFlits = 32,
    // Virtual lanes, 1 to 16.
    parameter int unsigned Lanes = 2,
    // Flits of a credit cell, 1 to 128.
    parameter int unsigned CellFlits = 8,
    // Cells of every lane's input buffer, 1 to 65535, and 2 flits or more; the largest packet must fit. A lane whose
    // buffer is full stalls its sender alone.
    parameter int unsigned LaneCells = 256,
    // Cells that CRD in a header returns, 1 to 31.
    parameter int unsigned CreditGrain = 4,
    // Flits that ACK in a header acknowledges, 1 to 255.
    parameter int unsigned AckGrain = 32,
    // Flits kept for replay, a power of two: 2 x BlockFlits to 16384, and above AckGrain. All lanes stall when it is
    // full.
    parameter int unsigned RetryFlits = 1024,
    // Cycles until a retry request is repeated, 16 to 32767; above the round trip.
    parameter int unsigned RetryTimeout = 1024,
    // Cycles that an acknowledgement or credit waits at most for a header to ride in, 1 to 65535.
    parameter int unsigned ReturnDelay = 256,
    localparam int unsigned FlitBits = 8 * FlitBytes
) (
    input  logic                                  clk_i,
    // Synchronous, active low.
    input  logic                                  rst_ni,
    // Packets to send: the head of every lane, and the content of the one being framed; see ub_packet_picker, ub_framer.
    input  logic                 [     Lanes-1:0] packet_valid_i,
    input  logic                 [  14*Lanes-1:0] packet_length_i,
    input  logic                 [   4*Lanes-1:0] packet_format_i,
    input  logic                 [   2*Lanes-1:0] packet_route_i,
    output logic                 [     Lanes-1:0] packet_take_o,
    output logic                 [           3:0] data_lane_o,
    output logic                                  data_take_o,
    input  logic                 [  FlitBits-1:0] data_i,
    // Packets received; see ub_deframer.
    input  logic                 [     Lanes-1:0] receive_ready_i,
    output logic                                  receive_valid_o,
    output logic                 [           3:0] receive_lane_o,
    output ub_link_pkg::packet_t                  receive_packet_o,
    output logic                                  receive_last_o,
    output logic                 [           6:0] receive_bytes_o,
    output logic                 [  FlitBits-1:0] receive_data_o,
    // The wire. Sending, a flit stands until ready; receiving, the link is always ready.
    output logic                                  flit_valid_o,
    output logic                 [  FlitBits-1:0] flit_o,
    input  logic                                  flit_ready_i,
    input  logic                                  flit_valid_i,
    input  logic                 [  FlitBits-1:0] flit_i,
    output ub_link_pkg::events_t                  events_o
);
  ub_link_pkg::returns_t returns;
  ub_link_pkg::taken_t taken;
  ub_link_pkg::arrived_t arrived;
  ub_link_pkg::retry_t retry;

  ub_link_transmitter #(
      .FlitBytes(FlitBytes),
      .BlockFlits(BlockFlits),
      .Lanes(Lanes),
      .CellFlits(CellFlits),
      .LaneCells(LaneCells),
      .CreditGrain(CreditGrain),
      .RetryFlits(RetryFlits)
  ) i_transmitter (
      .clk_i,
      .rst_ni,
      .packet_valid_i,
      .packet_length_i,
      .packet_format_i,
      .packet_route_i,
      .packet_take_o,
      .data_lane_o,
      .data_take_o,
      .data_i,
      .returns_i(returns),
      .taken_o(taken),
      .arrived_i(arrived),
      .retry_i(retry),
      .flit_valid_o,
      .flit_o,
      .flit_ready_i,
      .asked_o(events_o.asked),
      .replayed_o(events_o.replayed),
      .idle_o(events_o.idle)
  );

  ub_link_receiver #(
      .FlitBytes(FlitBytes),
      .BlockFlits(BlockFlits),
      .Lanes(Lanes),
      .CellFlits(CellFlits),
      .LaneCells(LaneCells),
      .CreditGrain(CreditGrain),
      .AckGrain(AckGrain),
      .AckForce(RetryFlits / 2),
      .ReturnDelay(ReturnDelay),
      .RetryTimeout(RetryTimeout)
  ) i_receiver (
      .clk_i,
      .rst_ni,
      .flit_valid_i,
      .flit_i,
      .returns_o(returns),
      .taken_i(taken),
      .arrived_o(arrived),
      .retry_o(retry),
      .receive_ready_i,
      .receive_valid_o,
      .receive_lane_o,
      .receive_packet_o,
      .receive_last_o,
      .receive_bytes_o,
      .receive_data_o,
      .damaged_o(events_o.damaged)
  );
  assign events_o.returned = taken.block;

`ifndef YOSYS
  // Parameters are in their ranges.
  initial begin
    flit_is_legal :
    assert (FlitBytes % 2 == 0 && FlitBytes >= 20 && FlitBytes <= 64);
    block_is_legal :
    assert (BlockFlits >= 2 && BlockFlits <= 32);
    lanes_are_legal :
    assert (Lanes >= 1 && Lanes <= 16);
    cells_are_legal :
    assert (CellFlits >= 1 && CellFlits <= 128 && LaneCells >= 1 && LaneCells <= 65535 && LaneCells * CellFlits >= 2);
    grains_are_legal :
    assert (CreditGrain >= 1 && CreditGrain <= 31 && AckGrain >= 1 && AckGrain <= 255);
    retry_buffer_is_legal :
    assert (2 ** $clog2(RetryFlits) == RetryFlits && RetryFlits >= 2 * BlockFlits && RetryFlits <= 16384 &&
        RetryFlits > AckGrain);
    times_are_legal :
    assert (RetryTimeout >= 16 && RetryTimeout <= 32767 && ReturnDelay >= 1 && ReturnDelay <= 65535);
  end
`endif
endmodule
