// Round-robin arbiter, combinational: grants the first request at or after the place `next_i`, wrapping round.
// Where the place stands is the caller's: an iSLIP arbiter moves it only when its grant is accepted.
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
  // The lowest request at or after the place, else the lowest of all; the lowest set bit of x is x & -x.
  logic [Requesters-1:0] after;
  logic [Requesters-1:0] masked;
  assign after = request_i & ({Requesters{1'b1}} << next_i);
  assign masked = after != '0 ? after : request_i;
  assign grant_o = masked & (~masked + Requesters'(1));
  assign any_o = request_i != '0;

  // Bit b of the index is set where the winner is one of the requesters whose number has that bit.
  for (genvar b = 0; b < IndexWidth; b++) begin : g_index
    logic [Requesters-1:0] numbered;
    for (genvar r = 0; r < Requesters; r++) begin : g_requester
      assign numbered[r] = (r >> b & 1) != 0;
    end
    assign index_o[b] = (grant_o & numbered) != '0;
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
