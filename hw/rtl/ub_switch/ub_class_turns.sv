// Turns of the service classes at an output, by deficit: a class's turn begins with its quantum, each packet takes its
// flits off, and the turn is open while something is left. A packet may take more than is left, by less than its own
// length, which the class owes in its next turn: lengths are known in cells where packets are picked, in flits once they
// go. A class that leaves its turn keeps at most MaxFlits for the next; one that has nothing waiting keeps nothing.
module ub_class_turns #(
    parameter int unsigned Classes = 4,        // 2 or more
    parameter int unsigned MaxFlits = 32,      // of a packet
    parameter int unsigned QuantumWidth = 16,  // MaxFlits must fit
    localparam int unsigned ClassWidth = $clog2(Classes),
    localparam int unsigned FlitsWidth = $clog2(MaxFlits + 1),
    localparam int unsigned DeficitWidth = QuantumWidth + 2
) (
    input logic clk_i,
    input logic rst_ni,

    input logic [Classes*QuantumWidth-1:0] quantum_i,  // flits of a turn, MaxFlits or more
    input logic [             Classes-1:0] waiting_i,  // classes that have something here

    // A packet of a class goes.
    input logic                  sent_i,
    input logic [ClassWidth-1:0] sent_class_i,
    input logic [FlitsWidth-1:0] sent_flits_i,

    output logic [ClassWidth-1:0] turn_o,
    output logic                  open_o
);
  logic [ClassWidth-1:0] turn_q;
  (* mem2reg *) logic signed [DeficitWidth-1:0] deficit_q[Classes];
  localparam logic signed [DeficitWidth-1:0] Kept = DeficitWidth'(MaxFlits);

  assign turn_o = turn_q;
  assign open_o = deficit_q[turn_q] > 0;

  logic begins;  // the packet is the first of a turn
  assign begins = sent_class_i != turn_q || !open_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      turn_q <= '0;
      for (int unsigned c = 0; c < Classes; c++) deficit_q[c] <= '0;
    end else begin
      if (sent_i) turn_q <= sent_class_i;
      for (int unsigned c = 0; c < Classes; c++) begin
        if (!waiting_i[c]) begin
          deficit_q[c] <= '0;
        end else if (sent_i && sent_class_i == ClassWidth'(c)) begin
          deficit_q[c] <= deficit_q[c] - DeficitWidth'(sent_flits_i)
              + (begins ? DeficitWidth'(quantum_i[c*QuantumWidth+:QuantumWidth]) : '0);
        end else if (sent_i && turn_q == ClassWidth'(c) && deficit_q[c] > Kept) begin
          deficit_q[c] <= Kept;
        end
      end
    end
  end

`ifndef YOSYS
  always_ff @(posedge clk_i) begin
    if (rst_ni && sent_i) begin
      only_who_waits_is_sent :
      assert (waiting_i[sent_class_i]);
      for (int unsigned c = 0; c < Classes; c++) begin
        no_class_owes_more_than_a_packet :
        assert (deficit_q[c] > -Kept && deficit_q[c] <= Kept + $signed(
            DeficitWidth'(quantum_i[c*QuantumWidth+:QuantumWidth])
        ));
      end
    end
  end
`endif
endmodule
