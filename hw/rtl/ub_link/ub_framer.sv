// Cuts packets into blocks of flits, with headers, returns riding in them, and BCRC; writes one flit a cycle into the
// retry buffer. Content arrives in whole beats of a flit's size and is shifted to where the headers leave room. A block
// starts only when the retry buffer has room for the longest; the framer is who waits, and with it the packets behind.
module ub_framer #(
    // Bytes of a flit, even, 20 to 64.
    parameter int unsigned FlitBytes = 20,
    // Flits of a block, 2 to 32.
    parameter int unsigned BlockFlits = 32,
    localparam int unsigned FlitBits = 8 * FlitBytes
) (
    input  logic                                  clk_i,
    input  logic                                  rst_ni,
    input  logic                                  packet_valid_i,
    input  ub_link_pkg::packet_t                  packet_i,
    input  logic                 [           3:0] packet_lane_i,
    output logic                                  packet_take_o,
    // Content of the packet in `data_lane_o`, in beats; the last is padded with anything. A packet is offered only
    // when all its beats are there: they cannot wait inside a block.
    output logic                 [           3:0] data_lane_o,
    output logic                                  data_take_o,
    input  logic                 [  FlitBits-1:0] data_i,
    input  ub_link_pkg::returns_t                 returns_i,
    output logic                                  header_acknowledge_o,
    output logic                                  header_credit_o,
    output logic                                  block_returns_o,
    // The retry buffer has room for a block and one flit more, or for at least one flit.
    input  logic                                  room_i,
    input  logic                                  last_room_i,
    output logic                                  flit_valid_o,
    output logic                 [  FlitBits-1:0] flit_o,
    output logic                                  flit_last_o
);
  localparam int unsigned CrcBytes = ub_link_pkg::CrcBytes;
  localparam int unsigned CountBits = $clog2(FlitBytes + 1);

  logic [5:0] left_q, flits;  // flits of the block, this one included
  ub_link_pkg::length_t remaining_q, remaining;  // bytes of the packet not framed yet
  ub_link_pkg::packet_t packet_q, packet;
  logic [3:0] lane_q, lane;
  logic [CountBits-1:0] residue_q;  // bytes of the last beat not framed yet
  logic [FlitBits-1:0] residue_data_q;
  logic [29:0] crc_q;

  // What happens in this cycle.
  logic boundary, in_packet, can_start, start_returns, start_block, active, last;
  assign boundary = left_q == '0;
  assign in_packet = remaining_q != '0;
  assign can_start = room_i && (in_packet || packet_valid_i);
  // The last place of the retry buffer is kept for acknowledgements: two ends whose buffers are full still free each
  // other.
  assign start_returns = boundary && (returns_i.urgent || (returns_i.wanted && !can_start)) &&
      (room_i || (last_room_i && returns_i.flits != '0));
  assign start_block = boundary && !start_returns && can_start;
  assign active = !boundary || start_block;
  assign packet_take_o = start_block && !in_packet;
  assign packet = packet_take_o ? packet_i : packet_q;
  assign lane = packet_take_o ? packet_lane_i : lane_q;
  assign remaining = packet_take_o ? packet_i.length : remaining_q;

  // Sizes: of the block, and of what this flit takes from the content.
  logic [2:0] header_bytes;
  logic [CountBits-1:0] slot, used, from_residue;
  logic [31:0] block_bytes;
  assign header_bytes = !start_block ? 3'd0 : in_packet ? 3'(ub_link_pkg::BlockHeaderBytes) : 3'(ub_link_pkg::HeaderBytes);
  assign block_bytes = 32'(remaining) + 32'(header_bytes) + CrcBytes;
  always_comb begin
    flits = left_q;
    if (start_block) begin
      flits = 6'd1;
      for (int unsigned f = 1; f < BlockFlits; f++) begin
        if (block_bytes > f * FlitBytes) flits = flits + 6'd1;
      end
    end
  end
  assign last = flits == 6'd1;
  assign slot = CountBits'(FlitBytes) - CountBits'(header_bytes) - (last ? CountBits'(CrcBytes) : '0);
  assign used = remaining < 14'(slot) ? CountBits'(remaining) : slot;
  assign from_residue = residue_q;
  assign data_take_o = active && from_residue < used;
  assign data_lane_o = lane;

  // Content: the residue, the next beat behind it.
  logic [2*FlitBits-1:0] content;
  logic [FlitBits-1:0] content_left, content_mask, content_flit;
  assign content = {{FlitBits{1'b0}}, residue_data_q} |
      (data_take_o ? {{FlitBits{1'b0}}, data_i} << {from_residue, 3'b000} : '0);
  assign content_left = FlitBits'(content >> {used, 3'b000});
  assign content_mask = ~({FlitBits{1'b1}} << {used, 3'b000});
  assign content_flit = (content[FlitBits-1:0] & content_mask) << {header_bytes, 3'b000};

  // Headers.
  ub_link_pkg::block_header_t header;
  logic [FlitBits-1:0] header_flit, returns_flit, bare_flit;
  always_comb begin
    header.credit = returns_i.credit;
    header.acknowledge = returns_i.acknowledge;
    header.credit_lane = returns_i.credit ? returns_i.credit_lane : '0;
    header.lane = lane;
    header.format = packet.format;
    header.route = packet.route;
    header_flit = '0;
    header_flit[15:0] = header;
    if (packet_take_o) header_flit[29:16] = packet_i.length;
    returns_flit = '0;
    returns_flit[9:6] = ub_link_pkg::KindReturns;
    returns_flit[31:16] = returns_i.flits;
    returns_flit[111:32] = returns_i.cells;
    bare_flit = content_flit | (start_block ? header_flit : '0);
    if (start_returns) bare_flit = returns_flit;
  end
  assign header_acknowledge_o = start_block && returns_i.acknowledge;
  assign header_credit_o = start_block && returns_i.credit;
  assign block_returns_o = start_returns;

  logic [29:0] crc_before, crc_head, crc_all;
  assign crc_before = boundary ? ub_link_pkg::CrcStart : crc_q;
  ub_crc30 #(
      .Bits(FlitBits)
  ) i_crc (
      .state_i(crc_before),
      .flit_i (bare_flit),
      .head_o (crc_head),
      .all_o  (crc_all)
  );
  assign flit_valid_o = active || start_returns;
  assign flit_last_o = last || start_returns;
  assign flit_o = flit_last_o ? {2'b00, crc_head, bare_flit[FlitBits-33:0]} : bare_flit;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      left_q <= '0;
      remaining_q <= '0;
      packet_q <= '0;
      lane_q <= '0;
      residue_q <= '0;
      residue_data_q <= '0;
      crc_q <= '0;
    end else if (active) begin
      left_q <= flits - 6'd1;
      remaining_q <= remaining - 14'(used);
      packet_q <= packet;
      lane_q <= lane;
      crc_q <= crc_all;
      // Behind the packet's last byte the beat is padding.
      if (remaining == 14'(used)) begin
        residue_q <= '0;
        residue_data_q <= '0;
      end else begin
        residue_q <= from_residue + (data_take_o ? CountBits'(FlitBytes) : '0) - used;
        residue_data_q <= content_left;
      end
    end
  end

`ifndef YOSYS
  // A block that has begun finds room for all its flits.
  block_is_not_interrupted :
  assert property (@(posedge clk_i) disable iff (!rst_ni) !active || boundary || last_room_i);
  // What is kept of a beat is less than a beat.
  residue_is_part_of_a_beat :
  assert property (@(posedge clk_i) disable iff (!rst_ni) residue_q < CountBits'(FlitBytes));
`endif
endmodule
