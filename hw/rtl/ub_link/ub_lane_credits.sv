// The sending end's account of free cells in the other end's lane buffers. Nobody stalls here: who spends looks first.
module ub_lane_credits #(
    // Virtual lanes, 1 to 16.
    parameter int unsigned Lanes = 2,
    // Cells of every lane's buffer at the other end, 1 to 65535.
    parameter int unsigned LaneCells = 256,
    // Cells that a header's CRD stands for, 1 to 31.
    parameter int unsigned CreditGrain = 4
) (
    input  logic                 clk_i,
    input  logic                 rst_ni,
    // One lane's cells go to a packet; never more than it has.
    input  logic                 spend_i,
    input  logic [          3:0] spend_lane_i,
    input  logic [         15:0] spend_cells_i,
    // A header's CRD.
    input  logic                 header_i,
    input  logic [          3:0] header_lane_i,
    // A Crd_Ack: 5 bits a lane.
    input  logic                 block_i,
    input  logic [         79:0] block_cells_i,
    // 16 bits a lane.
    output logic [16*Lanes-1:0] credits_o,
    // Lanes that get cells back in this cycle.
    output logic [    Lanes-1:0] grown_o
);
  for (genvar l = 0; l < Lanes; l++) begin : g_lane
    logic [15:0] credits_q;
    logic [15:0] back;
    always_comb begin
      back = '0;
      if (header_i && header_lane_i == 4'(l)) back = 16'(CreditGrain);
      if (block_i) back = 16'(block_cells_i[ub_link_pkg::CellBits*l+:ub_link_pkg::CellBits]);
    end
    logic [15:0] spent;
    assign spent = spend_i && spend_lane_i == 4'(l) ? spend_cells_i : '0;

    always_ff @(posedge clk_i) begin
      if (!rst_ni) credits_q <= 16'(LaneCells);
      else credits_q <= credits_q + back - spent;
    end
    assign credits_o[16*l+:16] = credits_q;
    assign grown_o[l] = back != '0;

`ifndef YOSYS
    // A lane cannot spend what it has not.
    spends_what_is_there :
    assert property (@(posedge clk_i) disable iff (!rst_ni) spent <= credits_q);
    // The other end cannot free more than its buffer holds.
    gets_back_what_was_spent :
    assert property (@(posedge clk_i) disable iff (!rst_ni) 17'(credits_q) + 17'(back) <= 17'(LaneCells));
`endif
  end

`ifndef YOSYS
  // Lanes that do not exist get nothing back.
  absent_lanes_get_nothing :
  assert property (@(posedge clk_i) disable iff (!rst_ni) !block_i ||
      (block_cells_i >> (ub_link_pkg::CellBits * Lanes)) == '0);
  // One block, one way of returning credits.
  one_way_at_a_time :
  assert property (@(posedge clk_i) disable iff (!rst_ni) !(header_i && block_i));
`endif
endmodule
