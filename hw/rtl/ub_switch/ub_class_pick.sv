// Whose turn it is among the service classes that wait for an output, combinational: of the lanes with a packet that may
// go, those of that class. Where the turns stand is ub_class_turns'.
//
//     arbitration_i   0   lanes in turn, whatever their class
//                     1   strict: the highest class
//                     2   deficit round robin: the class in turn while its turn is open, then the next
//
// An output that still sends can wait: it picks among all classes that have something for it, though the packet of the
// one it picks may not go yet, since its input is busy. Without that, classes with one input would lose their turns.
module ub_class_pick #(
    parameter int unsigned Lanes = 8,    // 1 or more
    parameter int unsigned Classes = 4,  // 2 or more
    localparam int unsigned ClassWidth = $clog2(Classes)
) (
    input logic [              1:0] arbitration_i,
    input logic [Classes*Lanes-1:0] lanes_of_i,     // word c: the lanes of class c
    input logic [   ClassWidth-1:0] turn_i,
    input logic                     open_i,
    input logic [      Classes-1:0] waiting_i,
    input logic                     patient_i,

    input  logic [     Lanes-1:0] ready_i,
    output logic [     Lanes-1:0] lanes_o,
    output logic [ClassWidth-1:0] class_o   // of these lanes; 0 where classes do not matter
);
  logic [Classes-1:0] candidates;
  logic [ClassWidth-1:0] after_turn, next, highest;
  always_comb begin
    highest = '0;
    for (int unsigned c = 0; c < Classes; c++) begin
      candidates[c] = patient_i ? waiting_i[c] : (ready_i & lanes_of_i[c*Lanes+:Lanes]) != '0;
      if (candidates[c]) highest = ClassWidth'(c);
    end
  end

  assign after_turn = 32'(turn_i) == Classes - 1 ? '0 : turn_i + ClassWidth'(1);
  logic [Classes-1:0] grant;
  logic any;
  ub_round_robin #(
      .Requesters(Classes)
  ) i_class (
      .request_i(candidates),
      .next_i(after_turn),
      .grant_o(grant),
      .index_o(next),
      .any_o(any)
  );
  logic unused;
  assign unused = ^{grant, any};

  always_comb begin
    unique case (arbitration_i)
      2'd1: class_o = highest;
      2'd2: class_o = open_i && candidates[turn_i] ? turn_i : next;
      default: class_o = '0;
    endcase
    lanes_o = ready_i;
    if (arbitration_i != 2'd0) begin
      lanes_o = '0;
      for (int unsigned c = 0; c < Classes; c++) begin
        if (class_o == ClassWidth'(c)) lanes_o = ready_i & lanes_of_i[c*Lanes+:Lanes];
      end
    end
  end
endmodule
