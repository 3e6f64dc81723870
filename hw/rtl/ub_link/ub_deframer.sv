// Takes whole packets out of the lane buffers, round robin over lanes, strips headers and CRC and gives the content in
// beats, one a flit, each with the number of its bytes. `receive_ready_i` of a lane lets a packet of it begin and each
// of its beats go on; a lane that turns unready inside its packet stalls them all, one that is never ready none.
module ub_deframer #(
    // Bytes of a flit, even, 20 to 64.
    parameter int unsigned FlitBytes = 20,
    // Flits of a block, 2 to 32.
    parameter int unsigned BlockFlits = 32,
    // Virtual lanes, 1 to 16.
    parameter int unsigned Lanes = 2,
    // Flits of a credit cell, 1 to 128.
    parameter int unsigned CellFlits = 8,
    localparam int unsigned FlitBits = 8 * FlitBytes,
    localparam int unsigned LaneBits = Lanes > 1 ? $clog2(Lanes) : 1
) (
    input  logic                                  clk_i,
    input  logic                                  rst_ni,
    // The lane buffers.
    input  logic                 [     Lanes-1:0] packets_i,
    input  logic                 [     Lanes-1:0] further_packets_i,
    output logic                 [           3:0] show_lane_o,
    input  logic                 [  FlitBits-1:0] flit_i,
    output logic                 [           3:0] advance_lane_o,
    output logic                                  advance_o,
    output logic                                  finish_o,
    // A cell of that lane is free again.
    output logic                                  freed_o,
    // Beats of content; the first bytes count.
    input  logic                 [     Lanes-1:0] receive_ready_i,
    output logic                                  receive_valid_o,
    output logic                 [           3:0] receive_lane_o,
    output ub_link_pkg::packet_t                  receive_packet_o,
    output logic                                  receive_last_o,
    output logic                 [           6:0] receive_bytes_o,
    output logic                 [  FlitBits-1:0] receive_data_o
);
  localparam int unsigned CrcBytes = ub_link_pkg::CrcBytes;
  localparam int unsigned FlitsBits = CellFlits > 1 ? $clog2(CellFlits) : 1;

  logic busy_q, first_q;  // a packet is shown; its first flit is
  logic [LaneBits-1:0] lane_q, next_lane, place_q;
  logic [5:0] left_q, flits;
  ub_link_pkg::length_t remaining_q, remaining;
  ub_link_pkg::packet_t packet_q, packet;
  logic [FlitsBits-1:0] cell_q;  // flits of the cell that are out

  // The flit shown.
  logic boundary, last, ready;
  logic [2:0] header_bytes;
  logic [6:0] slot, used;
  logic [31:0] block_bytes;
  always_comb begin
    packet = packet_q;
    if (first_q) begin
      packet.length = flit_i[29:16];
      packet.format = flit_i[13:10];
      packet.route  = flit_i[15:14];
    end
  end
  assign boundary = first_q || left_q == '0;
  assign remaining = first_q ? packet.length : remaining_q;
  assign header_bytes = !boundary ? 3'd0 : first_q ? 3'(ub_link_pkg::HeaderBytes) : 3'(ub_link_pkg::BlockHeaderBytes);
  assign block_bytes = 32'(remaining) + 32'(header_bytes) + CrcBytes;
  always_comb begin
    flits = left_q;
    if (boundary) begin
      flits = 6'd1;
      for (int unsigned f = 1; f < BlockFlits; f++) begin
        if (block_bytes > f * FlitBytes) flits = flits + 6'd1;
      end
    end
  end
  assign last = flits == 6'd1;
  assign slot = 7'(FlitBytes) - 7'(header_bytes) - (last ? 7'(CrcBytes) : '0);
  assign used = remaining < 14'(slot) ? 7'(remaining) : slot;

  always_comb begin
    ready = 1'b0;
    for (int unsigned l = 0; l < Lanes; l++) begin
      if (lane_q == LaneBits'(l)) ready = receive_ready_i[l];
    end
  end
  assign receive_valid_o = busy_q && used != '0;
  assign receive_lane_o = 4'(lane_q);
  assign receive_packet_o = packet;
  assign receive_last_o = remaining == 14'(used);
  assign receive_bytes_o = used;
  assign receive_data_o = (flit_i >> {header_bytes, 3'b000}) & ~({FlitBits{1'b1}} << {used, 3'b000});
  assign advance_o = busy_q && (ready || used == '0);
  assign advance_lane_o = 4'(lane_q);
  assign finish_o = last && remaining == 14'(used);
  assign freed_o = advance_o && (finish_o || 32'(cell_q) == CellFlits - 1);

  // The next packet: chosen while the last flit of this one goes.
  logic [Lanes-1:0] choices, grant;
  logic choose, any;
  assign choose = !busy_q || (advance_o && finish_o);
  always_comb begin
    for (int unsigned l = 0; l < Lanes; l++) begin
      choices[l] = receive_ready_i[l] &&
          (busy_q && lane_q == LaneBits'(l) ? further_packets_i[l] : packets_i[l]);
    end
  end
  ub_round_robin #(
      .Requesters(Lanes)
  ) i_lane (
      .request_i(choices),
      .next_i   (place_q),
      .grant_o  (grant),
      .index_o  (next_lane),
      .any_o    (any)
  );
  assign show_lane_o = choose ? 4'(next_lane) : 4'(lane_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q <= 1'b0;
      first_q <= 1'b0;
      lane_q <= '0;
      place_q <= '0;
      left_q <= '0;
      remaining_q <= '0;
      packet_q <= '0;
      cell_q <= '0;
    end else begin
      if (advance_o) begin
        left_q <= flits - 6'd1;
        remaining_q <= remaining - 14'(used);
        packet_q <= packet;
        first_q <= 1'b0;
        cell_q <= freed_o ? '0 : cell_q + FlitsBits'(1);
      end
      if (choose) begin
        busy_q  <= any;
        first_q <= any;
        lane_q  <= next_lane;
        if (any) place_q <= next_lane == LaneBits'(Lanes - 1) ? '0 : next_lane + LaneBits'(1);
      end
    end
  end

`ifndef YOSYS
  // A packet shown is one that was chosen.
  choice_is_a_lane :
  assert property (@(posedge clk_i) disable iff (!rst_ni) any == (grant != '0));
`endif
endmodule
