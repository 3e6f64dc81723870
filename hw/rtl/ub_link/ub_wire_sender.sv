// Chooses what goes on the wire. Between blocks: first the answer to a retry request, behind which replay begins, then
// an own retry request, then the next block, else a null block. The wire stalls it by `flit_ready_i`.
module ub_wire_sender #(
    // Bits of a flit.
    parameter int unsigned FlitBits = 160
) (
    input  logic                                  clk_i,
    input  logic                                  rst_ni,
    input  ub_link_pkg::retry_t                   retry_i,
    input  logic                                  next_valid_i,
    input  logic                 [  FlitBits-1:0] next_flit_i,
    input  logic                                  next_last_i,
    output logic                                  take_o,
    output logic                                  rewind_o,
    output ub_link_pkg::position_t                rewind_to_o,
    input  logic                                  rewindable_i,
    // Valid in every cycle once out of reset.
    output logic                                  flit_valid_o,
    output logic                 [  FlitBits-1:0] flit_o,
    input  logic                                  flit_ready_i,
    output logic                                  asked_o,
    output logic                                  replayed_o,
    output logic                                  idle_o
);
  logic in_block_q, ask_q, replay_q;
  ub_link_pkg::position_t replay_from_q;
  logic [15:0] replay_tag_q;
  logic [FlitBits-1:0] flit_q;
  logic valid_q;

  logic advance, between, answer, ask, block;
  assign advance = flit_ready_i || !valid_q;
  assign between = !in_block_q;
  // A request for flits that were never sent, or are acknowledged, is none: it was payload that looked like one.
  assign answer = between && replay_q && rewindable_i;
  assign ask = between && !answer && ask_q;
  assign block = !between || (!answer && !ask && next_valid_i);
  assign take_o = advance && block;
  assign rewind_o = advance && answer;
  assign rewind_to_o = replay_from_q;
  assign replayed_o = advance && answer;
  assign asked_o = advance && ask;
  assign idle_o = advance && !answer && !ask && !block;

  logic [FlitBits-1:0] control;
  logic [29:0] crc_head;
  // A control block ends with its flit, so that only the CRC at the head is used: the one behind the flit stays unused.
  /* verilator lint_off UNUSEDSIGNAL */
  logic [29:0] crc_all;
  /* verilator lint_on UNUSEDSIGNAL */
  always_comb begin
    control = '0;
    if (answer) begin
      control[9:6] = ub_link_pkg::KindRetryAnswer;
      control[31:16] = replay_from_q;
      control[47:32] = replay_tag_q;
    end else if (ask) begin
      control[9:6] = ub_link_pkg::KindRetryRequest;
      control[31:16] = retry_i.position;
      control[47:32] = retry_i.tag;
    end else begin
      control[9:6] = ub_link_pkg::KindNull;
    end
  end
  ub_crc30 #(
      .Bits(FlitBits)
  ) i_crc (
      .state_i(ub_link_pkg::CrcStart),
      .flit_i (control),
      .head_o (crc_head),
      .all_o  (crc_all)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      in_block_q <= 1'b0;
      ask_q <= 1'b0;
      replay_q <= 1'b0;
      replay_from_q <= '0;
      replay_tag_q <= '0;
    end else begin
      valid_q <= 1'b1;
      if (take_o) in_block_q <= !next_last_i;
      ask_q <= retry_i.ask || (ask_q && !asked_o);
      if (retry_i.replay) begin
        replay_q <= 1'b1;
        replay_from_q <= retry_i.replay_from;
        replay_tag_q <= retry_i.replay_tag;
      end else if (advance && between) begin
        replay_q <= 1'b0;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (advance) flit_q <= block ? next_flit_i : {2'b00, crc_head, control[FlitBits-33:0]};
  end
  assign flit_o = flit_q;
  assign flit_valid_o = valid_q;

`ifndef YOSYS
  // Behind a block's first flit the others follow without a gap.
  block_has_no_gap :
  assert property (@(posedge clk_i) disable iff (!rst_ni) !in_block_q || next_valid_i);
  // The CRC covers all but its own place.
  crc_place_is_empty :
  assert property (@(posedge clk_i) disable iff (!rst_ni) control[FlitBits-1-:32] == '0);
`endif
endmodule
