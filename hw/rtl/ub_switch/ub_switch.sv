// Switch chip of the Unified Bus: credits for whole packets on every link, an input buffer with virtual output queues
// at each port, an iSLIP allocator, cut-through of whole packets, a crossbar.
//
// A packet is 1 to MaxFlits flits in consecutive cycles. Its first flit carries, from bit 0: virtual lane (4 bits),
// length in flits (10), label (16). The routing table maps labels to outputs. Packets of a lane from one input to one
// output stay in order; lanes share an output's link packet by packet, in turn.
//
// With service classes each lane belongs to one, and an output picks by class first: by strict priority, or in turns of
// so many flits each.
//
// A sender needs ceil(flits / CellFlits) credits of the packet's lane and gets them back by credit_* once the packet
// has left the buffer. The same at the outputs: the receiver's buffer is told by credit returns after reset.
//
// First flit in to first flit out of an idle switch: 5 cycles.
module ub_switch #(
    parameter int unsigned Ports = 16,        // 1 to 64
    parameter int unsigned Lanes = 2,         // 1 to 16
    parameter int unsigned Classes = 1,       // service classes, 1 to 8
    parameter int unsigned BufferCells = 32,  // of a lane of an input; MaxFlits / CellFlits or more
    parameter int unsigned CellFlits = 8,     // of a credit; a power of two, 2 or more
    parameter int unsigned FlitBits = 160,    // data path width, 32 or more
    parameter int unsigned MaxFlits = 32,     // of a packet; a multiple of CellFlits, at most 1023
    parameter int unsigned Routes = 64,       // labels of the routing table, 1 to 65536
    parameter int unsigned Streams = 4,       // packets an input sends at the same time: read ports of its buffer
    parameter int unsigned Iterations = 2,    // of the allocator, 1 or more
    parameter bit Ahead = 1,                  // an output picks its next packet while it sends one
    parameter int unsigned QuantumWidth = 16, // of a class's flits per turn; MaxFlits must fit
    // Of the credit counters: they hold all cells that a receiver tells of, and MaxFlits / CellFlits or more.
    parameter int unsigned CreditWidth = 13,
    // Cells of a lane of a receiver's buffer, at most: what a link can hand back. For assertions alone.
    parameter int unsigned ReceiverCells = 2 ** CreditWidth - 1,
    localparam int unsigned PortWidth = Ports > 1 ? $clog2(Ports) : 1,
    localparam int unsigned LaneWidth = Lanes > 1 ? $clog2(Lanes) : 1,
    localparam int unsigned ClassWidth = Classes > 1 ? $clog2(Classes) : 1,
    localparam int unsigned StreamWidth = Streams > 1 ? $clog2(Streams) : 1,
    localparam int unsigned RouteWidth = Routes > 1 ? $clog2(Routes) : 1,
    localparam int unsigned FlitsWidth = $clog2(MaxFlits + 1),
    localparam int unsigned CellsWidth = $clog2(MaxFlits / CellFlits + 1)
) (
    input logic clk_i,
    input logic rst_ni,  // synchronous; empties the switch. The first flit of a link after it is a packet's first.

    // From links.
    input  logic [           Ports-1:0] valid_i,
    input  logic [  Ports*FlitBits-1:0] flit_i,
    output logic [           Ports-1:0] credit_valid_o,
    output logic [ Ports*LaneWidth-1:0] credit_lane_o,
    output logic [Ports*CellsWidth-1:0] credit_cells_o,

    // To links. After a cycle in which a link is not ready there is one, three cycles later, in which no flit comes
    // out for it.
    input  logic [            Ports-1:0] ready_i,
    output logic [            Ports-1:0] valid_o,
    output logic [            Ports-1:0] first_o,         // the flit is the first of its packet
    output logic [   Ports*FlitBits-1:0] flit_o,
    input  logic [            Ports-1:0] credit_valid_i,
    input  logic [  Ports*LaneWidth-1:0] credit_lane_i,
    input  logic [Ports*CreditWidth-1:0] credit_cells_i,

    // Writes to the routing table, at all inputs.
    input logic                  route_write_i,
    input logic [RouteWidth-1:0] route_label_i,
    input logic [ PortWidth-1:0] route_output_i,

    // Service classes, where there are several; they stand still after reset. How an output picks among them (0: lanes
    // in turn, whatever their class; 1: the highest class; 2: deficit round robin), whose each lane is, and how many
    // flits a class has in its turn, MaxFlits or more.
    input logic [                     1:0] arbitration_i,
    input logic [    Lanes*ClassWidth-1:0] lane_class_i,
    input logic [Classes*QuantumWidth-1:0] quantum_i
);
  localparam int unsigned MaxCells = MaxFlits / CellFlits;
  localparam int unsigned SourceWidth = $clog2(Ports * Streams) > 0 ? $clog2(Ports * Streams) : 1;

  logic [Ports-1:0] arrived, input_ready, grant, granted_last, output_ready, matched, matched_runs, next_runs;
  logic [Ports-1:0] grant_runs, arrived_alone;
  logic [Ports*SourceWidth-1:0] next_source;
  logic [Ports*Streams-1:0] runs;
  logic [Ports*LaneWidth-1:0] arrived_lane, grant_lane, matched_lane;
  logic [Ports*PortWidth-1:0] arrived_output, grant_output, matched_input;
  logic [Ports*FlitsWidth-1:0] granted_flits;
  logic [Ports*StreamWidth-1:0] granted_stream;
  logic [Ports*CellsWidth-1:0] arrived_cells, granted_next_cells;
  logic [Ports*Lanes*CellsWidth-1:0] credits;
  logic [Ports*Streams*FlitBits-1:0] stream_flit;
  logic [Ports-1:0] ready_q;
  always_ff @(posedge clk_i) ready_q <= ready_i;

  // Words of the vectors that are picked from.
  (* mem2reg *) logic [FlitsWidth-1:0] granted_flits_of[Ports];
  (* mem2reg *) logic [StreamWidth-1:0] granted_stream_of[Ports];
  (* mem2reg *) logic [FlitBits-1:0] stream_flit_of[Ports*Streams];
  always_comb begin
    for (int unsigned i = 0; i < Ports; i++) begin
      granted_flits_of[i]  = granted_flits[i*FlitsWidth+:FlitsWidth];
      granted_stream_of[i] = granted_stream[i*StreamWidth+:StreamWidth];
    end
    runs = '0;
    for (int unsigned o = 0; o < Ports; o++) begin
      if (next_runs[o]) runs[next_source[o*SourceWidth+:SourceWidth]] = 1'b1;
    end
    for (int unsigned s = 0; s < Ports * Streams; s++) stream_flit_of[s] = stream_flit[s*FlitBits+:FlitBits];
  end

  for (genvar i = 0; i < Ports; i++) begin : g_input
    assign grant_runs[i] = matched_runs[grant_output[i*PortWidth+:PortWidth]];
    ub_switch_input #(
        .Ports(Ports),
        .Lanes(Lanes),
        .BufferCells(BufferCells),
        .CellFlits(CellFlits),
        .FlitBits(FlitBits),
        .MaxFlits(MaxFlits),
        .Routes(Routes),
        .Streams(Streams)
    ) i_input (
        .clk_i,
        .rst_ni,
        .valid_i(valid_i[i]),
        .flit_i(flit_i[i*FlitBits+:FlitBits]),
        .credit_valid_o(credit_valid_o[i]),
        .credit_lane_o(credit_lane_o[i*LaneWidth+:LaneWidth]),
        .credit_cells_o(credit_cells_o[i*CellsWidth+:CellsWidth]),
        .route_write_i,
        .route_label_i,
        .route_output_i,
        .arrived_o(arrived[i]),
        .arrived_alone_o(arrived_alone[i]),
        .arrived_lane_o(arrived_lane[i*LaneWidth+:LaneWidth]),
        .arrived_output_o(arrived_output[i*PortWidth+:PortWidth]),
        .arrived_cells_o(arrived_cells[i*CellsWidth+:CellsWidth]),
        .ready_o(input_ready[i]),
        .grant_i(grant[i]),
        .grant_lane_i(grant_lane[i*LaneWidth+:LaneWidth]),
        .grant_output_i(grant_output[i*PortWidth+:PortWidth]),
        .granted_flits_o(granted_flits[i*FlitsWidth+:FlitsWidth]),
        .granted_stream_o(granted_stream[i*StreamWidth+:StreamWidth]),
        .granted_last_o(granted_last[i]),
        .granted_next_cells_o(granted_next_cells[i*CellsWidth+:CellsWidth]),
        .grant_runs_i(grant_runs[i]),
        .runs_i(runs[i*Streams+:Streams]),
        .advance_i(ready_q),
        .stream_flit_o(stream_flit[i*Streams*FlitBits+:Streams*FlitBits])
    );
  end

  ub_switch_allocator #(
      .Ports(Ports),
      .Lanes(Lanes),
      .Classes(Classes),
      .MaxCells(MaxCells),
      .MaxFlits(MaxFlits),
      .QuantumWidth(QuantumWidth),
      .Iterations(Iterations)
  ) i_allocator (
      .clk_i,
      .rst_ni,
      .arbitration_i,
      .lane_class_i,
      .quantum_i,
      .arrived_i(arrived),
      .arrived_alone_i(arrived_alone),
      .arrived_lane_i(arrived_lane),
      .arrived_output_i(arrived_output),
      .arrived_cells_i(arrived_cells),
      .granted_flits_i(granted_flits),
      .granted_last_i(granted_last),
      .granted_next_cells_i(granted_next_cells),
      .input_ready_i(input_ready),
      .output_ready_i(output_ready),
      .output_patient_i(~matched_runs),
      .credits_i(credits),
      .grant_o(grant),
      .grant_lane_o(grant_lane),
      .grant_output_o(grant_output),
      .matched_o(matched),
      .matched_lane_o(matched_lane),
      .matched_input_o(matched_input)
  );

  // ---- Outputs: credits, the packet that goes out, and two steps to the link: read, crossbar

  for (genvar o = 0; o < Ports; o++) begin : g_output
    logic [FlitsWidth-1:0] left_q, next_left_q;  // flits of its packet, and of the next, still to be read
    logic start_q;                               // none has been read yet
    logic [SourceWidth-1:0] source_q, next_source_q, crossing_q, source;
    logic crossing_valid_q, crossing_first_q;
    logic [PortWidth-1:0] from;
    logic [FlitsWidth-1:0] flits;
    logic reads, ends, next_valid;
    logic first_q;
    logic [FlitBits-1:0] flit_q;  // on the link

    assign from = matched_input[o*PortWidth+:PortWidth];
    assign flits = granted_flits_of[from];
    assign source = SourceWidth'(32'(from) * Streams + 32'(granted_stream_of[from]));
    assign reads = left_q != '0 && ready_q[o];
    assign ends = left_q == '0 || (left_q == FlitsWidth'(1) && reads);
    assign next_valid = next_left_q != '0;
    assign output_ready[o] = Ahead ? !next_valid || ends : ends;
    assign matched_runs[o] = ends && !next_valid;
    assign next_runs[o] = ends && next_valid;
    assign next_source[o*SourceWidth+:SourceWidth] = next_source_q;

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        left_q <= '0;
        next_left_q <= '0;
        crossing_valid_q <= 1'b0;
        valid_o[o] <= 1'b0;
      end else begin
        if (next_runs[o]) left_q <= next_left_q;
        else if (matched[o] && matched_runs[o]) left_q <= flits;
        else if (reads) left_q <= left_q - FlitsWidth'(1);
        if (matched[o] && !matched_runs[o]) next_left_q <= flits;
        else if (next_runs[o]) next_left_q <= '0;
        crossing_valid_q <= reads;
        valid_o[o] <= crossing_valid_q;
      end
      if (matched[o]) next_source_q <= source;
      if (next_runs[o]) source_q <= next_source_q;
      else if (matched[o] && matched_runs[o]) source_q <= source;
      if (next_runs[o] || (matched[o] && matched_runs[o])) start_q <= 1'b1;
      else if (reads) start_q <= 1'b0;
      if (reads) begin
        crossing_q <= source_q;
        crossing_first_q <= start_q;
      end
      if (crossing_valid_q) begin
        flit_q  <= stream_flit_of[crossing_q];
        first_q <= crossing_first_q;
      end
    end
    assign flit_o[o*FlitBits+:FlitBits] = flit_q;
    assign first_o[o] = first_q;

    for (genvar l = 0; l < Lanes; l++) begin : g_lane
      logic [CreditWidth-1:0] credits_q;
      // verilator tracing_off
      logic [CreditWidth-1:0] back, taken;
      // verilator tracing_on
      assign back = credit_valid_i[o] && 32'(credit_lane_i[o*LaneWidth+:LaneWidth]) == l
          ? credit_cells_i[o*CreditWidth+:CreditWidth] : '0;
      assign taken = matched[o] && 32'(matched_lane[o*LaneWidth+:LaneWidth]) == l
          ? CreditWidth'((32'(flits) + CellFlits - 1) / CellFlits) : '0;
      always_ff @(posedge clk_i) begin
        if (!rst_ni) credits_q <= '0;
        else credits_q <= credits_q + back - taken;
      end
      assign credits[(o*Lanes+l)*CellsWidth+:CellsWidth] =
          credits_q >= CreditWidth'(MaxCells) ? CellsWidth'(MaxCells) : CellsWidth'(credits_q);
`ifndef YOSYS
      always_ff @(posedge clk_i) begin
        if (rst_ni) begin
          credits_never_run_out :
          assert (taken <= credits_q);
          // A receiver cannot have more cells free than its buffer has.
          credits_fit_the_receiver :
          assert (32'(credits_q) + 32'(back) <= ReceiverCells);
        end
      end
`endif
    end
  end

`ifndef YOSYS
  // Parameters are in their ranges.
  initial begin
    ports_are_legal :
    assert (Ports >= 1 && Ports <= 64);
    lanes_are_legal :
    assert (Lanes >= 1 && Lanes <= 16);
    cells_are_legal :
    assert (CellFlits >= 2 && 2 ** $clog2(CellFlits) == CellFlits && BufferCells >= MaxCells);
    packets_are_legal :
    assert (MaxFlits >= CellFlits && MaxFlits % CellFlits == 0 && MaxFlits <= 1023);
    flits_are_legal :
    assert (FlitBits >= 32);
    classes_are_legal :
    assert (Classes >= 1 && Classes <= 8 && 2 ** QuantumWidth > MaxFlits);
    routes_are_legal :
    assert (Routes >= 1 && Routes <= 65536);
    streams_and_iterations_are_legal :
    assert (Streams >= 1 && Iterations >= 1);
    credits_can_be_counted :
    assert (2 ** CreditWidth > MaxCells && ReceiverCells < 2 ** CreditWidth);
  end
`endif
endmodule
