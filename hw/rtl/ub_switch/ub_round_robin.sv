// Round-robin arbiter, combinational: grants the first request at or after the place `next_i`, wrapping round.
// Where the place stands is the caller's: an iSLIP arbiter moves it only when its grant is accepted.
// Arbiters stand by the hundred in an allocator: left out of waves.
// verilator tracing_off
module ub_round_robin #(
    // Requesters, 1 or more.
    parameter int unsigned Requesters = 4,
    localparam int unsigned IndexWidth = Requesters > 1 ? $clog2(Requesters) : 1
) (
    input  logic [Requesters-1:0] request_i,
    input  logic [IndexWidth-1:0] next_i,
    output logic [Requesters-1:0] grant_o,  // one hot, or none without a request
    output logic [IndexWidth-1:0] index_o,  // of the grant; 0 without one
    output logic                  any_o
);
  // Word b: the requesters whose number has bit b. Evaluated when the design is built: nothing of it runs, so nothing of
  // it can be covered.
  // verilator coverage_off
  function automatic logic [IndexWidth*Requesters-1:0] numbered();
    for (int unsigned b = 0; b < IndexWidth; b++) begin
      for (int unsigned r = 0; r < Requesters; r++) numbered[b*Requesters+r] = (r >> b & 1) != 0;
    end
  endfunction
  // verilator coverage_on
  localparam logic [IndexWidth*Requesters-1:0] Numbered = numbered();

  assign any_o = request_i != '0;

  // The lowest request at or after the place, else the lowest of all; the lowest set bit of x is x & -x. Bit b of the
  // index is set where the winner is one of the requesters whose number has that bit.
  logic [Requesters-1:0] after;
  logic [Requesters-1:0] masked;
  always_comb begin
    after   = '0;
    masked  = '0;
    grant_o = '0;
    index_o = '0;
    // Without a request all of this is 0 anyway: the condition spares a simulator the work.
    if (any_o) begin
      after   = request_i & ({Requesters{1'b1}} << next_i);
      masked  = after != '0 ? after : request_i;
      grant_o = masked & (~masked + Requesters'(1));
      for (int unsigned b = 0; b < IndexWidth; b++) index_o[b] = (grant_o & Numbered[b*Requesters+:Requesters]) != '0;
    end
  end

`ifndef YOSYS
  always_comb begin
    grant_is_one_request :
    assert ($onehot0(grant_o) && (grant_o & ~request_i) == '0);
    somebody_wins :
    assert (any_o == (grant_o != '0));
  end
`endif
endmodule
// verilator tracing_on
