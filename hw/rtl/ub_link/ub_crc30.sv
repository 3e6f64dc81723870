// CRC30 of one more flit, combinational. `head_o` leaves out the flit's last 32 bits, where a block's last flit has
// its BCRC; `all_o` is the state behind the whole flit. Every bit of the result is the parity of some bits of flit and
// state: which ones, the polynomial says.
module ub_crc30 #(
    // Bits of a flit, 64 or more.
    parameter int unsigned Bits = 160
) (
    input  logic [    29:0] state_i,
    input  logic [Bits-1:0] flit_i,
    output logic [    29:0] head_o,
    output logic [    29:0] all_o
);
  localparam int unsigned HeadBits = Bits - 32;

  // Of the last `Bits` bits that went in, those that turn bit `index` of the state: bit b has been shifted on by all
  // bits behind it.
  function automatic logic [Bits-1:0] taps(logic [4:0] index, int unsigned bits);
    logic [29:0] shifted;
    taps = '0;
    shifted = ub_link_pkg::CrcPolynomial;
    for (int unsigned b = 0; b < bits; b++) begin
      taps[bits-1-b] = shifted[index];
      shifted = {shifted[28:0], 1'b0} ^ (shifted[29] ? ub_link_pkg::CrcPolynomial : 30'd0);
    end
  endfunction

  // The state is what would be left of 30 bits in front; turned round, it adds to the first 30.
  logic [HeadBits-1:0] head;
  logic [31:0] tail;
  always_comb begin
    head = flit_i[HeadBits-1:0];
    for (int unsigned b = 0; b < 30; b++) head[b] = flit_i[b] ^ state_i[29-b];
  end
  always_comb begin
    tail = flit_i[Bits-1:HeadBits];
    for (int unsigned b = 0; b < 30; b++) tail[b] = flit_i[HeadBits+b] ^ head_o[29-b];
  end
  for (genvar i = 0; i < 30; i++) begin : g_bit
    localparam logic [Bits-1:0] HeadTaps = taps(5'(i), HeadBits);
    localparam logic [Bits-1:0] TailTaps = taps(5'(i), 32);
    assign head_o[i] = ^(head & HeadTaps[HeadBits-1:0]);
    assign all_o[i] = ^(tail & TailTaps[31:0]);
  end
endmodule
