// What the receiving half owes the other end: acknowledgements for accepted flits and cells that were freed. Headers
// of data blocks carry them in grains; what is left over goes in a control block of its own, at once when the wire is
// idle and a grain is due, else after ReturnDelay cycles. Flits of control blocks alone ask for none, else two idle
// ends would acknowledge each other's acknowledgements for ever.
module ub_returns #(
    // Virtual lanes, 1 to 16.
    parameter int unsigned Lanes = 2,
    // Cells that a header's CRD stands for, 1 to 31.
    parameter int unsigned CreditGrain = 4,
    // Flits that a header's ACK stands for, 1 to 255.
    parameter int unsigned AckGrain = 32,
    // Owed flits from which on an acknowledgement is urgent, 1 to 8192: at most half of the other end's retry buffer.
    parameter int unsigned AckForce = 512,
    // Cycles that anything owed waits at most for a data block's header, 1 to 65535.
    parameter int unsigned ReturnDelay = 256
) (
    input  logic                   clk_i,
    input  logic                   rst_ni,
    // A block of the replayable stream has been accepted, of so many flits.
    input  logic                   accepted_i,
    input  logic                   accepted_data_i,
    input  logic             [5:0] accepted_flits_i,
    // A cell of a lane has been freed.
    input  logic                   freed_i,
    input  logic             [3:0] freed_lane_i,
    // What the sending half takes along in this cycle: a header's ACK, a header's CRD, or a Crd_Ack with everything.
    input  logic                   header_acknowledge_i,
    input  logic                   header_credit_i,
    input  logic                   block_i,
    output ub_link_pkg::returns_t  returns_o
);
  localparam int unsigned LaneBits = Lanes > 1 ? $clog2(Lanes) : 1;

  ub_link_pkg::position_t flits_q, flits_d;
  logic data_q;  // some of the flits are data
  logic [15:0] age_q;
  logic waiting;
  logic [Lanes-1:0] some, grain;
  logic [LaneBits-1:0] place_q, grain_lane;
  logic any_grain;
  logic [79:0] cells;

  for (genvar l = 0; l < 16; l++) begin : g_lane
    if (l < Lanes) begin : g_used
      logic [15:0] cells_q;
      logic [15:0] offered;
      logic [15:0] gone;
      assign offered = cells_q > 16'(ub_link_pkg::MaxCells) ? 16'(ub_link_pkg::MaxCells) : cells_q;
      always_comb begin
        gone = '0;
        if (header_credit_i && grain_lane == LaneBits'(l)) gone = 16'(CreditGrain);
        if (block_i) gone = offered;
      end
      always_ff @(posedge clk_i) begin
        if (!rst_ni) cells_q <= '0;
        else cells_q <= cells_q - gone + 16'(freed_i && freed_lane_i == 4'(l));
      end
      assign some[l] = cells_q != '0;
      assign grain[l] = cells_q >= 16'(CreditGrain);
      assign cells[ub_link_pkg::CellBits*l+:ub_link_pkg::CellBits] = offered[ub_link_pkg::CellBits-1:0];
`ifndef YOSYS
      // A header takes a grain only from a lane that has one.
      returns_what_was_freed :
      assert property (@(posedge clk_i) disable iff (!rst_ni) gone <= cells_q);
`endif
    end else begin : g_unused
      assign cells[ub_link_pkg::CellBits*l+:ub_link_pkg::CellBits] = '0;
    end
  end

  logic [Lanes-1:0] grain_grant;
  ub_round_robin #(
      .Requesters(Lanes)
  ) i_lane (
      .request_i(grain),
      .next_i   (place_q),
      .grant_o  (grain_grant),
      .index_o  (grain_lane),
      .any_o    (any_grain)
  );

  always_comb begin
    flits_d = flits_q;
    if (header_acknowledge_i) flits_d = flits_d - 16'(AckGrain);
    if (block_i) flits_d = '0;
    if (accepted_i) flits_d = flits_d + 16'(accepted_flits_i);
  end
  assign waiting = (data_q && flits_q != '0) || some != '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      flits_q <= '0;
      data_q  <= 1'b0;
      age_q   <= '0;
      place_q <= '0;
    end else begin
      flits_q <= flits_d;
      data_q  <= (data_q && !block_i && flits_q != '0) || (accepted_i && accepted_data_i);
      if (block_i || !waiting) age_q <= '0;
      else if (age_q != 16'(ReturnDelay)) age_q <= age_q + 16'd1;
      if (header_credit_i) place_q <= grain_lane == LaneBits'(Lanes - 1) ? '0 : grain_lane + LaneBits'(1);
    end
  end

  assign returns_o.acknowledge = flits_q >= 16'(AckGrain);
  assign returns_o.credit = any_grain;
  assign returns_o.credit_lane = 4'(grain_lane);
  assign returns_o.wanted = (data_q && flits_q >= 16'(AckGrain)) || any_grain;
  assign returns_o.urgent = age_q == 16'(ReturnDelay) || flits_q >= 16'(AckForce);
  assign returns_o.flits = flits_q;
  assign returns_o.cells = cells;

`ifndef YOSYS
  // A header acknowledges only what has been accepted.
  acknowledges_what_was_accepted :
  assert property (@(posedge clk_i) disable iff (!rst_ni) !header_acknowledge_i || flits_q >= 16'(AckGrain));
  // The grant of credits is one lane.
  one_lane_is_granted :
  assert property (@(posedge clk_i) disable iff (!rst_ni) (grain_grant != '0) == any_grain);
`endif
endmodule
