// Separable allocator of inputs to outputs, iSLIP: in every iteration each output that may take a packet offers
// itself to one input that has one, in turn; each input accepts one of the offers, in turn. Turns move on only where
// an offer of the first iteration was accepted, which keeps everybody served. Combinational but for requests, lengths
// and turns: one matching a cycle.
//
// At an output each lane has an input whose turn it is, and lanes whose input's packet fits into the credits take
// turns. A packet that does not fit keeps its lane's turn: short packets of other inputs cannot keep it waiting for
// ever. With service classes an output first picks a class (ub_class_pick), whose lanes take turns; where the highest
// class goes first, an input too accepts the highest class of its offers.
module ub_switch_allocator #(
    parameter int unsigned Ports = 16,
    parameter int unsigned Lanes = 2,
    parameter int unsigned Classes = 1,
    parameter int unsigned MaxCells = 4,    // of a packet, 1 or more
    parameter int unsigned MaxFlits = 32,   // of a packet
    parameter int unsigned QuantumWidth = 16,
    parameter int unsigned Iterations = 2,  // 1 or more
    localparam int unsigned PortWidth = Ports > 1 ? $clog2(Ports) : 1,
    localparam int unsigned LaneWidth = Lanes > 1 ? $clog2(Lanes) : 1,
    localparam int unsigned ClassWidth = Classes > 1 ? $clog2(Classes) : 1,
    localparam int unsigned FlitsWidth = $clog2(MaxFlits + 1),
    localparam int unsigned CellsWidth = $clog2(MaxCells + 1)
) (
    input logic clk_i,
    input logic rst_ni,

    // As ub_switch has them.
    input logic [                     1:0] arbitration_i,
    input logic [    Lanes*ClassWidth-1:0] lane_class_i,
    input logic [Classes*QuantumWidth-1:0] quantum_i,

    // An input has a packet in its queue for (lane, output), alone there or behind others.
    input logic [           Ports-1:0] arrived_i,
    input logic [           Ports-1:0] arrived_alone_i,
    input logic [ Ports*LaneWidth-1:0] arrived_lane_i,
    input logic [ Ports*PortWidth-1:0] arrived_output_i,
    input logic [Ports*CellsWidth-1:0] arrived_cells_i,
    // The packet granted has so many flits; it was the last of its queue, or the one behind it takes so many cells.
    input logic [Ports*FlitsWidth-1:0] granted_flits_i,
    input logic [           Ports-1:0] granted_last_i,
    input logic [Ports*CellsWidth-1:0] granted_next_cells_i,

    input logic [                 Ports-1:0] input_ready_i,
    input logic [                 Ports-1:0] output_ready_i,
    input logic [                 Ports-1:0] output_patient_i,  // its link has flits for the next cycle without a match
    input logic [Ports*Lanes*CellsWidth-1:0] credits_i,      // of (output, lane), MaxCells where there are more

    // To inputs.
    output logic [          Ports-1:0] grant_o,
    output logic [Ports*LaneWidth-1:0] grant_lane_o,
    output logic [Ports*PortWidth-1:0] grant_output_o,
    // To outputs.
    output logic [          Ports-1:0] matched_o,
    output logic [Ports*LaneWidth-1:0] matched_lane_o,
    output logic [Ports*PortWidth-1:0] matched_input_o
);
  // Word (output, lane), bit i: input i asks.
  logic [Ports*Lanes*Ports-1:0] request_q;
  (* mem2reg *) logic [PortWidth-1:0] input_turn_q[Ports*Lanes];  // of (output, lane)
  (* mem2reg *) logic [LaneWidth-1:0] lane_turn_q[Ports*Classes];  // of (output, class)
  (* mem2reg *) logic [PortWidth-1:0] output_turn_q[Ports];       // of inputs

  // (output, lane, input): cells of the first packet of that queue.
  (* mem2reg *) logic [CellsWidth-1:0] head_cells_q[Ports*Lanes*Ports];

  (* mem2reg *) logic [Ports-1:0] requests[Ports*Lanes];  // the words of request_q
  always_comb begin
    for (int unsigned w = 0; w < Ports * Lanes; w++) requests[w] = request_q[w*Ports+:Ports];
  end

  // ---- Service classes: which lanes are whose, and whose turn it is at each output

  logic [Ports*ClassWidth-1:0] class_turn, matched_class;
  logic [Ports-1:0] class_open;
  logic [Ports*Classes-1:0] class_waiting;
  logic [Classes*Lanes-1:0] lanes_of;  // word c: lanes of class c
  if (Classes > 1) begin : g_classes
    always_comb begin
      for (int unsigned c = 0; c < Classes; c++) begin
        for (int unsigned l = 0; l < Lanes; l++)
        lanes_of[c*Lanes+l] = lane_class_i[l*ClassWidth+:ClassWidth] == ClassWidth'(c);
      end
    end
    for (genvar o = 0; o < Ports; o++) begin : g_output
      logic [Lanes-1:0] lanes_waiting;
      always_comb begin
        for (int unsigned l = 0; l < Lanes; l++) lanes_waiting[l] = requests[o*Lanes+l] != '0;
        for (int unsigned c = 0; c < Classes; c++)
        class_waiting[o*Classes+c] = (lanes_waiting & lanes_of[c*Lanes+:Lanes]) != '0;
      end
      ub_class_turns #(
          .Classes(Classes),
          .MaxFlits(MaxFlits),
          .QuantumWidth(QuantumWidth)
      ) i_turns (
          .clk_i,
          .rst_ni,
          .quantum_i,
          .waiting_i(class_waiting[o*Classes+:Classes]),
          .sent_i(matched_o[o] && arbitration_i == 2'd2),
          .sent_class_i(matched_class[o*ClassWidth+:ClassWidth]),
          .sent_flits_i(granted_flits_i[32'(matched_input_o[o*PortWidth+:PortWidth])*FlitsWidth+:FlitsWidth]),
          .turn_o(class_turn[o*ClassWidth+:ClassWidth]),
          .open_o(class_open[o])
      );
      // Where lanes take turns whatever their class, their place is class 0's.
      assign matched_class[o*ClassWidth+:ClassWidth] = arbitration_i == 2'd0
          ? '0 : lane_class_i[32'(matched_lane_o[o*LaneWidth+:LaneWidth])*ClassWidth+:ClassWidth];
    end
  end else begin : g_one_class
    assign lanes_of = '1;
    assign class_turn = '0;
    assign class_open = '0;
    assign class_waiting = '0;
    assign matched_class = '0;
    logic unused;
    assign unused = ^{
      arbitration_i, lane_class_i, quantum_i, granted_flits_i, output_patient_i, lanes_of, class_turn, class_open, class_waiting
    };
  end

  // Thousands of wires between requests and grants: left out of waves.
  // verilator tracing_off
  for (genvar k = 0; k < Iterations; k++) begin : g_iteration
    logic [Ports-1:0] inputs, outputs;  // not matched yet
    if (k == 0) begin : g_first
      assign inputs  = input_ready_i;
      assign outputs = output_ready_i;
    end else begin : g_further
      assign inputs  = g_iteration[k-1].inputs & ~g_iteration[k-1].accepts;
      assign outputs = g_iteration[k-1].outputs & ~g_iteration[k-1].accepted;
    end

    // Offers of the outputs.
    logic [Ports-1:0] offers;
    logic [Ports*LaneWidth-1:0] offer_lane;
    logic [Ports*PortWidth-1:0] offer_input;
    logic [Ports*ClassWidth-1:0] offer_class;
    for (genvar o = 0; o < Ports; o++) begin : g_output
      logic [Lanes-1:0] lanes, picked;
      (* mem2reg *) logic [PortWidth-1:0] input_of[Lanes];
      for (genvar l = 0; l < Lanes; l++) begin : g_lane
        logic [Ports-1:0] input_grant;
        logic any_input;
        logic [PortWidth-1:0] turn;
        ub_round_robin #(
            .Requesters(Ports)
        ) i_input (
            .request_i(requests[o*Lanes+l] & inputs),
            .next_i(input_turn_q[o*Lanes+l]),
            .grant_o(input_grant),
            .index_o(turn),
            .any_o(any_input)
        );
        assign input_of[l] = turn;
        assign lanes[l] = outputs[o] && any_input
            && head_cells_q[(o*Lanes+l)*Ports+32'(turn)] <= credits_i[(o*Lanes+l)*CellsWidth+:CellsWidth];
        logic unused;
        assign unused = ^input_grant;
      end
      if (Classes > 1) begin : g_pick
        ub_class_pick #(
            .Lanes(Lanes),
            .Classes(Classes)
        ) i_class (
            .arbitration_i,
            .lanes_of_i(lanes_of),
            .turn_i(class_turn[o*ClassWidth+:ClassWidth]),
            .open_i(class_open[o]),
            .waiting_i(class_waiting[o*Classes+:Classes]),
            .patient_i(output_patient_i[o]),
            .ready_i(lanes),
            .lanes_o(picked),
            .class_o(offer_class[o*ClassWidth+:ClassWidth])
        );
      end else begin : g_all
        assign picked = lanes;
        assign offer_class[o*ClassWidth+:ClassWidth] = '0;
      end
      logic [LaneWidth-1:0] lane;
      logic [Lanes-1:0] lane_grant;
      ub_round_robin #(
          .Requesters(Lanes)
      ) i_lane (
          .request_i(picked),
          .next_i(lane_turn_q[o*Classes+32'(offer_class[o*ClassWidth+:ClassWidth])]),
          .grant_o(lane_grant),
          .index_o(lane),
          .any_o(offers[o])
      );
      assign offer_lane[o*LaneWidth+:LaneWidth]  = lane;
      assign offer_input[o*PortWidth+:PortWidth] = input_of[lane];
      logic unused;
      assign unused = ^lane_grant;
    end

    (* mem2reg *) logic [LaneWidth-1:0] offer_lane_of[Ports];
    always_comb begin
      for (int unsigned o = 0; o < Ports; o++) offer_lane_of[o] = offer_lane[o*LaneWidth+:LaneWidth];
    end

    // Word i: the outputs that offer themselves to input i.
    logic [Ports*Ports-1:0] offered;
    always_comb begin
      offered = '0;
      for (int unsigned o = 0; o < Ports; o++) begin
        if (offers[o]) offered[32'(offer_input[o*PortWidth+:PortWidth])*Ports+o] = 1'b1;
      end
    end

    // Of these, those that an input chooses among.
    logic [Ports*Ports-1:0] acceptable;
    if (Classes > 1) begin : g_highest
      logic [Classes*Ports-1:0] outputs_of;  // word c: outputs that offer to take class c
      always_comb begin
        for (int unsigned c = 0; c < Classes; c++) begin
          for (int unsigned o = 0; o < Ports; o++)
          outputs_of[c*Ports+o] = offer_class[o*ClassWidth+:ClassWidth] == ClassWidth'(c);
        end
        acceptable = offered;
        if (arbitration_i == 2'd1) begin
          for (int unsigned i = 0; i < Ports; i++) begin
            for (int unsigned c = 0; c < Classes; c++) begin
              if ((offered[i*Ports+:Ports] & outputs_of[c*Ports+:Ports]) != '0)
                acceptable[i*Ports+:Ports] = offered[i*Ports+:Ports] & outputs_of[c*Ports+:Ports];
            end
          end
        end
      end
    end else begin : g_any
      assign acceptable = offered;
    end

    // What the inputs accept.
    logic [Ports-1:0] accepts, accepted;
    logic [Ports*PortWidth-1:0] accept_output;
    for (genvar i = 0; i < Ports; i++) begin : g_input
      logic [Ports-1:0] one;
      ub_round_robin #(
          .Requesters(Ports)
      ) i_output (
          .request_i(acceptable[i*Ports+:Ports]),
          .next_i(output_turn_q[i]),
          .grant_o(one),
          .index_o(accept_output[i*PortWidth+:PortWidth]),
          .any_o(accepts[i])
      );
      logic unused;
      assign unused = ^one;
    end
    always_comb begin
      accepted = '0;
      for (int unsigned i = 0; i < Ports; i++) begin
        if (accepts[i]) accepted[accept_output[i*PortWidth+:PortWidth]] = 1'b1;
      end
    end

    // All matches up to here.
    logic [Ports-1:0] granted, matched;
    logic [Ports*PortWidth-1:0] granted_output, matched_input;
    logic [Ports*LaneWidth-1:0] granted_lane, matched_lane;
    for (genvar p = 0; p < Ports; p++) begin : g_port
      logic [PortWidth-1:0] to;
      assign to = accept_output[p*PortWidth+:PortWidth];
      if (k == 0) begin : g_first
        assign granted_output[p*PortWidth+:PortWidth] = to;
        assign granted_lane[p*LaneWidth+:LaneWidth]   = offer_lane_of[to];
        assign matched_input[p*PortWidth+:PortWidth]  = offer_input[p*PortWidth+:PortWidth];
        assign matched_lane[p*LaneWidth+:LaneWidth]   = offer_lane[p*LaneWidth+:LaneWidth];
      end else begin : g_further
        assign granted_output[p*PortWidth+:PortWidth] =
            accepts[p] ? to : g_iteration[k-1].granted_output[p*PortWidth+:PortWidth];
        assign granted_lane[p*LaneWidth+:LaneWidth] = accepts[p]
            ? offer_lane_of[to] : g_iteration[k-1].granted_lane[p*LaneWidth+:LaneWidth];
        assign matched_input[p*PortWidth+:PortWidth] = accepted[p]
            ? offer_input[p*PortWidth+:PortWidth] : g_iteration[k-1].matched_input[p*PortWidth+:PortWidth];
        assign matched_lane[p*LaneWidth+:LaneWidth] = accepted[p]
            ? offer_lane[p*LaneWidth+:LaneWidth] : g_iteration[k-1].matched_lane[p*LaneWidth+:LaneWidth];
      end
    end
    if (k == 0) begin : g_all_first
      assign granted = accepts;
      assign matched = accepted;
    end else begin : g_all
      assign granted = g_iteration[k-1].granted | accepts;
      assign matched = g_iteration[k-1].matched | accepted;
    end
  end

  // verilator tracing_on

  assign grant_o = g_iteration[Iterations-1].granted;
  assign grant_lane_o = g_iteration[Iterations-1].granted_lane;
  assign grant_output_o = g_iteration[Iterations-1].granted_output;
  assign matched_o = g_iteration[Iterations-1].matched;
  assign matched_lane_o = g_iteration[Iterations-1].matched_lane;
  assign matched_input_o = g_iteration[Iterations-1].matched_input;

  // ---- Requests, lengths and turns

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      // More than 8,192 bits are meant, from 48 ports and 4 lanes on.
      // verilator lint_off WIDTHCONCAT
      request_q <= '0;
      // verilator lint_on WIDTHCONCAT
    end else begin
      for (int unsigned i = 0; i < Ports; i++) begin
        if (grant_o[i] && granted_last_i[i]) begin
          request_q[(32'(grant_output_o[i*PortWidth+:PortWidth])*Lanes+32'(grant_lane_o[i*LaneWidth+:LaneWidth]))*Ports+i]
              <= 1'b0;
        end
        if (arrived_i[i]) begin
          request_q[(32'(arrived_output_i[i*PortWidth+:PortWidth])*Lanes+32'(arrived_lane_i[i*LaneWidth+:LaneWidth]))*Ports+i]
              <= 1'b1;
        end
      end
    end
  end

  // Needs no reset: a length counts only where there is a request.
  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < Ports; i++) begin
      if (grant_o[i]) begin
        head_cells_q[(32'(grant_output_o[i*PortWidth+:PortWidth])*Lanes+32'(grant_lane_o[i*LaneWidth+:LaneWidth]))*Ports+i]
            <= granted_next_cells_i[i*CellsWidth+:CellsWidth];
      end
      if (arrived_i[i] && arrived_alone_i[i]) begin
        head_cells_q[(32'(arrived_output_i[i*PortWidth+:PortWidth])*Lanes+32'(arrived_lane_i[i*LaneWidth+:LaneWidth]))*Ports+i]
            <= arrived_cells_i[i*CellsWidth+:CellsWidth];
      end
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned o = 0; o < Ports; o++) begin
      for (int unsigned c = 0; c < Classes; c++) begin
        if (!rst_ni) begin
          lane_turn_q[o*Classes+c] <= '0;
        end else if (matched_o[o] && matched_class[o*ClassWidth+:ClassWidth] == ClassWidth'(c)) begin
          lane_turn_q[o*Classes+c] <= 32'(matched_lane_o[o*LaneWidth+:LaneWidth]) == Lanes - 1
              ? '0 : matched_lane_o[o*LaneWidth+:LaneWidth] + LaneWidth'(1);
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned p = 0; p < Ports; p++) begin
      if (!rst_ni) begin
        output_turn_q[p] <= '0;
        for (int unsigned l = 0; l < Lanes; l++) input_turn_q[p*Lanes+l] <= '0;
      end else begin
        if (g_iteration[0].accepted[p]) begin
          input_turn_q[p*Lanes+32'(matched_lane_o[p*LaneWidth+:LaneWidth])] <=
              32'(matched_input_o[p*PortWidth+:PortWidth]) == Ports - 1
              ? '0 : matched_input_o[p*PortWidth+:PortWidth] + PortWidth'(1);
        end
        if (g_iteration[0].accepts[p]) begin
          output_turn_q[p] <= 32'(grant_output_o[p*PortWidth+:PortWidth]) == Ports - 1
              ? '0 : grant_output_o[p*PortWidth+:PortWidth] + PortWidth'(1);
        end
      end
    end
  end

`ifndef YOSYS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      as_many_inputs_as_outputs_are_matched :
      assert ($countones(grant_o) == $countones(matched_o));
      matches_are_with_ready_ports :
      assert ((grant_o & ~input_ready_i) == '0 && (matched_o & ~output_ready_i) == '0);
    end
  end
`endif
endmodule
