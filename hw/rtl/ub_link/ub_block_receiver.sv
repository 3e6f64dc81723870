// Finds blocks in the stream of flits, checks their CRC, and says what each brought. After a damaged block everything
// is thrown away until the other end's Retry_Ack, looked for in every flit, since block borders are lost; requests of
// the other end are heard all the same, so that both directions can be damaged at once. An unanswered request is
// repeated, each time after twice the wait; an answer counts only for the last request, by its tag. Nothing stalls it.
module ub_block_receiver #(
    // Bytes of a flit, even, 20 to 64.
    parameter int unsigned FlitBytes = 20,
    // Flits of a block, 2 to 32.
    parameter int unsigned BlockFlits = 32,
    // Flits that a header's ACK stands for, 1 to 255.
    parameter int unsigned AckGrain = 32,
    // Cycles until the first repetition of a request, 16 to 32767. Below the round trip a retry takes longer: answers
    // to requests that have been repeated are passed over.
    parameter int unsigned RetryTimeout = 1024,
    localparam int unsigned FlitBits = 8 * FlitBytes
) (
    input  logic                                  clk_i,
    input  logic                                  rst_ni,
    input  logic                                  flit_valid_i,
    input  logic                 [  FlitBits-1:0] flit_i,
    // Data, not checked before its block's end; `write_offset_o` counts the block's flits.
    output logic                                  write_o,
    output logic                 [           3:0] write_lane_o,
    output logic                 [           4:0] write_offset_o,
    output logic                 [  FlitBits-1:0] write_flit_o,
    // The block is good, with the flit written in this cycle its last; and so is its packet.
    output logic                                  commit_o,
    output logic                                  commit_packet_o,
    // A block of the replayable stream is accepted.
    output logic                                  accepted_o,
    output logic                 [           5:0] accepted_flits_o,
    output ub_link_pkg::arrived_t                 arrived_o,
    output ub_link_pkg::retry_t                   retry_o,
    output logic                                  damaged_o
);
  localparam int unsigned CrcBytes = ub_link_pkg::CrcBytes;

  logic valid_q;
  logic [FlitBits-1:0] flit_q;
  logic retrying_q;
  logic [5:0] left_q, flits;  // flits of the block, this one included
  logic [4:0] offset_q, offset;
  logic [29:0] crc_q;
  ub_link_pkg::length_t remaining_q;  // bytes of the packet behind the last good block
  ub_link_pkg::length_t after_q, after;  // the same behind this block
  ub_link_pkg::block_header_t header_q, header;
  ub_link_pkg::position_t position_q;
  logic [15:0] tag_q;
  logic [16:0] wait_q, limit_q;

  logic first, control, last, further;
  ub_link_pkg::length_t bytes;
  logic [31:0] block_bytes, capacity;
  assign first = retrying_q || left_q == '0;
  assign header = first ? flit_q[15:0] : header_q;
  assign control = header.format == '0;
  assign further = remaining_q != '0;
  assign bytes = further ? remaining_q : flit_q[29:16];
  always_comb begin
    block_bytes = 32'(bytes) + CrcBytes + (further ? ub_link_pkg::BlockHeaderBytes : ub_link_pkg::HeaderBytes);
    capacity = BlockFlits * FlitBytes - CrcBytes - (further ? ub_link_pkg::BlockHeaderBytes : ub_link_pkg::HeaderBytes);
    after = after_q;
    flits = left_q;
    if (first) begin
      after = 32'(bytes) > capacity ? bytes - 14'(capacity) : '0;
      flits = 6'd1;
      for (int unsigned f = 1; f < BlockFlits; f++) begin
        if (!retrying_q && !control && block_bytes > f * FlitBytes) flits = flits + 6'd1;
      end
    end
  end
  assign last = flits == 6'd1;
  assign offset = first ? '0 : offset_q;

  logic [29:0] crc_before, crc_head, crc_all;
  assign crc_before = first ? ub_link_pkg::CrcStart : crc_q;
  ub_crc30 #(
      .Bits(FlitBits)
  ) i_crc (
      .state_i(crc_before),
      .flit_i (flit_q),
      .head_o (crc_head),
      .all_o  (crc_all)
  );

  // What the flit ends, if anything.
  logic good, data, returns, request, answer, accepted, damaged, answered, repeated;
  assign good = valid_q && last && flit_q[FlitBits-1-:32] == {2'b00, crc_head};
  assign data = good && !retrying_q && !control;
  assign returns = good && !retrying_q && control && header.lane == ub_link_pkg::KindReturns;
  assign request = good && control && header.lane == ub_link_pkg::KindRetryRequest;
  assign answer = good && control && header.lane == ub_link_pkg::KindRetryAnswer;
  assign accepted = data || returns;
  assign answered = retrying_q && answer && flit_q[47:32] == tag_q && flit_q[31:16] == position_q;
  // An answer nobody waits for means that the other end was misled: its stream is not where it is thought to be.
  assign damaged = valid_q && !retrying_q && ((last && !good) || answer);
  assign repeated = retrying_q && !answered && wait_q == '0;

  assign write_o = valid_q && !retrying_q && !control;
  assign write_lane_o = header.lane;
  assign write_offset_o = offset;
  assign write_flit_o = flit_q;
  assign commit_o = data;
  assign commit_packet_o = data && after == '0;
  assign accepted_o = accepted;
  assign accepted_flits_o = 6'(offset) + 6'd1;
  assign damaged_o = damaged;
  always_comb begin
    arrived_o = '0;
    if (data && header.acknowledge) arrived_o.acknowledged = 16'(AckGrain);
    if (returns) arrived_o.acknowledged = flit_q[31:16];
    arrived_o.header_credit = data && header.credit;
    arrived_o.credit_lane = header.credit_lane;
    arrived_o.block_credit = returns;
    arrived_o.cells = flit_q[111:32];
    retry_o.ask = damaged || repeated;
    retry_o.replay = request;
    retry_o.replay_from = flit_q[31:16];
    retry_o.replay_tag = flit_q[47:32];
    retry_o.position = position_q;
    retry_o.tag = tag_q;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      retrying_q <= 1'b0;
      left_q <= '0;
      offset_q <= '0;
      crc_q <= '0;
      remaining_q <= '0;
      after_q <= '0;
      header_q <= '0;
      position_q <= '0;
      tag_q <= '0;
      wait_q <= '0;
      limit_q <= '0;
    end else begin
      valid_q <= flit_valid_i;
      if (valid_q) begin
        left_q <= retrying_q ? '0 : flits - 6'd1;
        offset_q <= offset + 5'd1;
        crc_q <= crc_all;
        after_q <= after;
        header_q <= header;
      end
      if (data) remaining_q <= after;
      if (accepted) position_q <= position_q + 16'(accepted_flits_o);
      if (damaged) begin
        retrying_q <= 1'b1;
        limit_q <= 17'(RetryTimeout);
        wait_q <= 17'(RetryTimeout);
      end else if (answered) begin
        retrying_q <= 1'b0;
      end else if (repeated) begin
        limit_q <= limit_q[16] ? limit_q : {limit_q[15:0], 1'b0};
        wait_q  <= limit_q[16] ? limit_q : {limit_q[15:0], 1'b0};
      end else if (wait_q != '0) begin
        wait_q <= wait_q - 17'd1;
      end
      if (damaged || repeated) tag_q <= tag_q + 16'd1;
    end
  end
  always_ff @(posedge clk_i) begin
    flit_q <= flit_i;
  end

`ifndef YOSYS
  // A damaged block delivers nothing.
  damage_delivers_nothing :
  assert property (@(posedge clk_i) disable iff (!rst_ni) !damaged || (!commit_o && !accepted_o));
  // While a retry is awaited nothing is accepted.
  retry_accepts_nothing :
  assert property (@(posedge clk_i) disable iff (!rst_ni) !retrying_q || (!write_o && !accepted_o));
`endif
endmodule
