// Chooses the next packet among the lanes, round robin, and pays its credits: a packet of f flits takes
// ceil(f / CellFlits) cells of its lane. A lane without enough waits and does not hold up the others. One packet is
// chosen ahead, so that the framer never waits for the choice.
module ub_packet_picker #(
    // Virtual lanes, 1 to 16.
    parameter int unsigned Lanes = 2,
    // Bytes of a flit, even, 20 to 64.
    parameter int unsigned FlitBytes = 20,
    // Flits of a block, 2 to 32.
    parameter int unsigned BlockFlits = 32,
    // Flits of a credit cell, 1 to 128.
    parameter int unsigned CellFlits = 8,
    // Cells of a lane's buffer at the other end, 1 to 65535; a packet that needs more is illegal, and would wait for
    // ever.
    parameter int unsigned LaneCells = 256,
    localparam int unsigned LaneBits = Lanes > 1 ? $clog2(Lanes) : 1
) (
    input  logic                                     clk_i,
    input  logic                                     rst_ni,
    // The head packet of every lane: 14 bits of length, 1 to what 16 blocks hold if that is less; 4 bits of format, 1 to 15; 2 bits of
    // route. Held until taken.
    input  logic                 [        Lanes-1:0] valid_i,
    input  logic                 [   14*Lanes-1:0] length_i,
    input  logic                 [    4*Lanes-1:0] format_i,
    input  logic                 [    2*Lanes-1:0] route_i,
    output logic                 [        Lanes-1:0] take_o,
    input  logic                 [   16*Lanes-1:0] credits_i,
    input  logic                 [        Lanes-1:0] grown_i,
    output logic                                     spend_o,
    output logic                 [              3:0] spend_lane_o,
    output logic                 [             15:0] spend_cells_o,
    // The chosen packet, held until taken.
    output logic                                     packet_valid_o,
    output ub_link_pkg::packet_t                     packet_o,
    output logic                 [              3:0] packet_lane_o,
    input  logic                                     packet_take_i
);
  localparam int unsigned PacketFlits = ub_link_pkg::MaxBlocks * BlockFlits;
  localparam int unsigned PacketCells = (PacketFlits + CellFlits - 1) / CellFlits;

  // Bytes behind the LPH that `flits` flits carry.
  function automatic int unsigned content_of(int unsigned flits);
    content_of = flits * FlitBytes - ub_link_pkg::HeaderBytes + ub_link_pkg::BlockHeaderBytes -
        (flits + BlockFlits - 1) / BlockFlits * (ub_link_pkg::BlockHeaderBytes + ub_link_pkg::CrcBytes);
  endfunction

  logic [Lanes-1:0] blocked_q;  // had too few credits when last looked at, and got none since
  logic [LaneBits-1:0] place_q, lane;
  logic [Lanes-1:0] grant;
  logic any;
  ub_round_robin #(
      .Requesters(Lanes)
  ) i_lane (
      .request_i(valid_i & ~blocked_q),
      .next_i   (place_q),
      .grant_o  (grant),
      .index_o  (lane),
      .any_o    (any)
  );

  ub_link_pkg::packet_t packet, packet_q;
  logic [15:0] credits;
  always_comb begin
    packet  = '0;
    credits = '0;
    for (int unsigned l = 0; l < Lanes; l++) begin
      if (grant[l]) begin
        packet.length = length_i[14*l+:14];
        packet.format = format_i[4*l+:4];
        packet.route = route_i[2*l+:2];
        credits = credits_i[16*l+:16];
      end
    end
  end

  logic [15:0] cells;
  always_comb begin
    cells = 16'd1;
    for (int unsigned c = 1; c < PacketCells; c++) begin
      if (32'(packet.length) > content_of(c * CellFlits)) cells = cells + 16'd1;
    end
  end

  logic valid_q, look, paid;
  logic [3:0] lane_q;
  assign look = any && (!valid_q || packet_take_i);
  assign paid = look && credits >= cells;
  assign take_o = paid ? grant : '0;
  assign spend_o = paid;
  assign spend_lane_o = 4'(lane);
  assign spend_cells_o = cells;
  assign packet_valid_o = valid_q;
  assign packet_o = packet_q;
  assign packet_lane_o = lane_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      blocked_q <= '0;
      place_q   <= '0;
      valid_q   <= 1'b0;
      packet_q  <= '0;
      lane_q    <= '0;
    end else begin
      blocked_q <= (blocked_q | (look && !paid ? grant : '0)) & ~grown_i;
      if (paid) place_q <= lane == LaneBits'(Lanes - 1) ? '0 : lane + LaneBits'(1);
      if (paid) begin
        packet_q <= packet;
        lane_q   <= 4'(lane);
      end
      valid_q <= paid || (valid_q && !packet_take_i);
    end
  end

`ifndef YOSYS
  // The length field of a legal packet: at least one byte, at most what 16 blocks hold.
  length_is_legal :
  assert property (@(posedge clk_i) disable iff (!rst_ni) !look || (packet.length != '0 &&
      32'(packet.length) <= content_of(PacketFlits)));
  // Format 0 marks control blocks.
  format_is_legal :
  assert property (@(posedge clk_i) disable iff (!rst_ni) !look || packet.format != '0);
  // A packet larger than its lane's buffer would wait for ever.
  packet_fits_its_lane :
  assert property (@(posedge clk_i) disable iff (!rst_ni) !look || 32'(cells) <= LaneCells);
`endif
endmodule
