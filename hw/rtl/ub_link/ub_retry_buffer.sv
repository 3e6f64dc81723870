// Ring of framed flits: written by the framer, read by the wire, kept until acknowledged, read again on replay. The
// framer stalls when it is full, that is when acknowledgements are late: full rate takes room for the flits of a round
// trip, AckGrain and two blocks; and of a second round trip while the other direction is in a retry.
module ub_retry_buffer #(
    // Flits, a power of two: 2 x BlockFlits to 16384.
    parameter int unsigned RetryFlits = 1024,
    // Flits of a block, 2 to 32.
    parameter int unsigned BlockFlits = 32,
    // Bits of a flit.
    parameter int unsigned FlitBits = 160
) (
    input  logic                                  clk_i,
    input  logic                                  rst_ni,
    input  logic                                  write_i,
    input  logic                 [  FlitBits-1:0] write_flit_i,
    input  logic                                  write_last_i,
    // Room for a block and one flit more; room for one flit.
    output logic                                  room_o,
    output logic                                  last_room_o,
    // Flits from the oldest on that the other end has accepted.
    input  ub_link_pkg::position_t                acknowledged_i,
    // The next flit for the wire.
    output logic                                  next_valid_o,
    output logic                 [  FlitBits-1:0] next_flit_o,
    output logic                                  next_last_o,
    input  logic                                  take_i,
    // Replay: the next flit is that of `rewind_to_i`, which must be `rewindable_o`: sent before, not acknowledged.
    input  logic                                  rewind_i,
    input  ub_link_pkg::position_t                rewind_to_i,
    output logic                                  rewindable_o
);
  localparam int unsigned AddressBits = $clog2(RetryFlits);
  logic [FlitBits:0] flits_q[RetryFlits];
  logic [FlitBits:0] read_q;
  // Positions: of the next flit written, what of that the read port can see, next sent, behind all ever sent, oldest
  // not acknowledged.
  ub_link_pkg::position_t end_q, seen_q, next_q, next_d, sent_q, oldest_q;
  ub_link_pkg::position_t free;
  // Payload that looked like a request can send the reading back while acknowledgements go on: what is still to be read
  // stays, even so.
  logic overtaken;

  assign overtaken = oldest_q != next_q && (oldest_q - next_q) <= 16'(RetryFlits);
  assign free = 16'(RetryFlits) - (end_q - (overtaken ? next_q : oldest_q));
  assign room_o = free > 16'(BlockFlits);
  assign last_room_o = free != '0;
  assign rewindable_o = (rewind_to_i - oldest_q) <= (sent_q - oldest_q);
  always_comb begin
    next_d = next_q;
    if (take_i) next_d = next_q + 16'd1;
    if (rewind_i) next_d = rewind_to_i;
  end
  assign next_valid_o = next_q != seen_q;
  assign {next_last_o, next_flit_o} = read_q;

  always_ff @(posedge clk_i) begin
    if (write_i) flits_q[end_q[AddressBits-1:0]] <= {write_last_i, write_flit_i};
    read_q <= flits_q[next_d[AddressBits-1:0]];
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      end_q <= '0;
      seen_q <= '0;
      next_q <= '0;
      sent_q <= '0;
      oldest_q <= '0;
    end else begin
      if (write_i) end_q <= end_q + 16'd1;
      seen_q <= end_q;
      next_q <= next_d;
      if (take_i && next_q == sent_q) sent_q <= sent_q + 16'd1;
      oldest_q <= oldest_q + acknowledged_i;
    end
  end

`ifndef YOSYS
  // What is not acknowledged is never overwritten.
  keeps_the_unacknowledged :
  assert property (@(posedge clk_i) disable iff (!rst_ni) !write_i || last_room_o);
  // The other end acknowledges only what was sent.
  acknowledged_was_sent :
  assert property (@(posedge clk_i) disable iff (!rst_ni) acknowledged_i <= sent_q - oldest_q);
  // A flit goes out only when it is there.
  takes_what_is_there :
  assert property (@(posedge clk_i) disable iff (!rst_ni) !take_i || next_valid_o);
  // Replay begins inside what is kept.
  rewinds_into_what_is_kept :
  assert property (@(posedge clk_i) disable iff (!rst_ni) !rewind_i || rewindable_o);
`endif
endmodule
