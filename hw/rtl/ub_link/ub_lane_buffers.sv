// The input buffers of all lanes, in one memory. A block's flits are written behind what is committed and count only
// when the block is committed, so a damaged block leaves no trace. Credits keep a lane from overflowing; flits of a
// damaged header that would not fit, or name no lane, are not written.
module ub_lane_buffers #(
    // Virtual lanes, 1 to 16.
    parameter int unsigned Lanes = 2,
    // Flits of a lane: cells times flits of a cell; 2 or more.
    parameter int unsigned LaneFlits = 2048,
    // Bits of a flit.
    parameter int unsigned FlitBits = 160
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    input  logic                write_i,
    input  logic [         3:0] write_lane_i,
    input  logic [         4:0] write_offset_i,
    input  logic [FlitBits-1:0] write_flit_i,
    input  logic                commit_i,
    input  logic                commit_packet_i,
    // Lanes with a whole packet.
    output logic [   Lanes-1:0] packets_o,
    output logic [   Lanes-1:0] further_packets_o,  // more than one
    // `flit_o` shows, from the next cycle on, the oldest flit of lane `show_lane_i`; `advance_i` is for the lane shown
    // now, and `finish_i` says that its packet ends there.
    input  logic [         3:0] show_lane_i,
    output logic [FlitBits-1:0] flit_o,
    input  logic [         3:0] advance_lane_i,
    input  logic                advance_i,
    input  logic                finish_i
);
  localparam int unsigned PointerBits = $clog2(LaneFlits);
  localparam int unsigned AddressBits = $clog2(Lanes * LaneFlits);
  localparam int unsigned CountBits = $clog2(LaneFlits + 1);

  logic [FlitBits-1:0] flits_q[Lanes*LaneFlits];
  logic [FlitBits-1:0] read_q;
  logic [AddressBits*Lanes-1:0] lane_write, lane_read;
  logic [Lanes-1:0] room;

  for (genvar l = 0; l < Lanes; l++) begin : g_lane
    logic [PointerBits-1:0] end_q, oldest_q, oldest_d;
    logic [CountBits-1:0] used_q, packets_q;
    logic [31:0] place, behind;
    logic commit, advance, finish;
    assign commit = commit_i && write_lane_i == 4'(l);
    assign advance = advance_i && advance_lane_i == 4'(l);
    assign finish = advance && finish_i;
    assign place = 32'(end_q) + 32'(write_offset_i);
    assign behind = place + 32'd1;
    assign room[l] = 32'(used_q) + 32'(write_offset_i) < LaneFlits;
    assign lane_write[AddressBits*l+:AddressBits] = AddressBits'(l * LaneFlits + (place < LaneFlits ? place : place - LaneFlits));
    always_comb begin
      oldest_d = oldest_q;
      if (advance) oldest_d = 32'(oldest_q) == LaneFlits - 1 ? '0 : oldest_q + PointerBits'(1);
    end
    assign lane_read[AddressBits*l+:AddressBits] = AddressBits'(l * LaneFlits) + AddressBits'(oldest_d);
    assign packets_o[l] = packets_q != '0;
    assign further_packets_o[l] = packets_q > CountBits'(1);

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        end_q <= '0;
        oldest_q <= '0;
        used_q <= '0;
        packets_q <= '0;
      end else begin
        if (commit) end_q <= PointerBits'(behind < LaneFlits ? behind : behind - LaneFlits);
        oldest_q <= oldest_d;
        used_q <= used_q + (commit ? CountBits'(write_offset_i) + CountBits'(1) : '0) - CountBits'(advance);
        packets_q <= packets_q + CountBits'(commit && commit_packet_i) - CountBits'(finish);
      end
    end

`ifndef YOSYS
    // Credits leave room for every good block.
    good_blocks_fit :
    assert property (@(posedge clk_i) disable iff (!rst_ni) !commit || room[l]);
    // Only flits of whole packets are read.
    reads_what_is_there :
    assert property (@(posedge clk_i) disable iff (!rst_ni) !advance || (used_q != '0 && packets_q != '0));
`endif
  end

  logic writes;
  logic [AddressBits-1:0] write_address, read_address;
  always_comb begin
    writes = 1'b0;
    write_address = '0;
    read_address = '0;
    for (int unsigned l = 0; l < Lanes; l++) begin
      if (write_lane_i == 4'(l)) begin
        writes = write_i && room[l];
        write_address = lane_write[AddressBits*l+:AddressBits];
      end
      if (show_lane_i == 4'(l)) read_address = lane_read[AddressBits*l+:AddressBits];
    end
  end
  always_ff @(posedge clk_i) begin
    if (writes) flits_q[write_address] <= write_flit_i;
    read_q <= flits_q[read_address];
  end
  assign flit_o = read_q;

`ifndef YOSYS
  // A good block names a lane that exists.
  good_blocks_name_a_lane :
  assert property (@(posedge clk_i) disable iff (!rst_ni) !commit_i || 32'(write_lane_i) < Lanes);
`endif
endmodule
