// Input unit of the switch: buffer of one port, shared by its virtual lanes in fixed parts, with a queue for every
// (lane, output), and streams that carry packets to the crossbar.
//
// Flits of a packet come in consecutive cycles and leave as the outputs take them: a packet may be read while it
// still arrives (cut-through). Senders hold credits for whole packets, so the buffer never runs over. The cells of a
// packet come free together once its last flit has been read; one packet a cycle is given back.
//
// Cycles of a flit: 1 on valid_i; 2 written, a first flit queued; 3 granted; 4 read; 5 on stream_flit_o.
module ub_switch_input #(
    parameter int unsigned Ports = 16,         // outputs, 1 or more
    parameter int unsigned Lanes = 2,          // 1 to 16
    parameter int unsigned BufferCells = 32,   // a lane; at least MaxFlits / CellFlits
    parameter int unsigned CellFlits = 8,      // a power of two, 2 or more
    parameter int unsigned FlitBits = 160,     // 32 or more: the header is in the first flit
    parameter int unsigned MaxFlits = 32,      // longest packet, a multiple of CellFlits
    parameter int unsigned Routes = 64,        // entries of the routing table
    parameter int unsigned Streams = 4,        // packets that are read at the same time, for different outputs
    localparam int unsigned PortWidth = Ports > 1 ? $clog2(Ports) : 1,
    localparam int unsigned LaneWidth = Lanes > 1 ? $clog2(Lanes) : 1,
    localparam int unsigned StreamWidth = Streams > 1 ? $clog2(Streams) : 1,
    localparam int unsigned RouteWidth = Routes > 1 ? $clog2(Routes) : 1,
    localparam int unsigned FlitsWidth = $clog2(MaxFlits + 1),
    localparam int unsigned CellsWidth = $clog2(MaxFlits / CellFlits + 1)
) (
    input logic clk_i,
    input logic rst_ni,

    // The link's receiving end.
    input  logic                  valid_i,
    input  logic [  FlitBits-1:0] flit_i,
    // Credits on their way back to the sender, in cells.
    output logic                  credit_valid_o,
    output logic [ LaneWidth-1:0] credit_lane_o,
    output logic [CellsWidth-1:0] credit_cells_o,

    // Writes to the routing table: label to output.
    input logic                  route_write_i,
    input logic [RouteWidth-1:0] route_label_i,
    input logic [ PortWidth-1:0] route_output_i,

    // A packet has joined a queue; nothing is before it there.
    output logic                  arrived_o,
    output logic                  arrived_alone_o,
    output logic [ LaneWidth-1:0] arrived_lane_o,
    output logic [ PortWidth-1:0] arrived_output_o,
    output logic [CellsWidth-1:0] arrived_cells_o,

    // The allocator takes the first packet of a queue. Allowed while ready_o; answers in the same cycle.
    output logic                   ready_o,
    input  logic                   grant_i,
    input  logic [  LaneWidth-1:0] grant_lane_i,
    input  logic [  PortWidth-1:0] grant_output_i,
    output logic [ FlitsWidth-1:0] granted_flits_o,
    output logic [StreamWidth-1:0] granted_stream_o,
    output logic                   granted_last_o,        // nothing is left in that queue
    output logic [ CellsWidth-1:0] granted_next_cells_o,  // of the packet behind it
    input  logic                   grant_runs_i,          // its output has no other packet before it

    // To the crossbar. A stream waits until its output comes to its packet, then a flit is read in every cycle in which
    // the output advances.
    input  logic [         Streams-1:0] runs_i,
    input  logic [           Ports-1:0] advance_i,
    output logic [Streams*FlitBits-1:0] stream_flit_o
);
  // verilator no_inline_module
  // One class for all ports: half the code to compile.
  localparam int unsigned Cells = Lanes * BufferCells;
  localparam int unsigned CellWidth = $clog2(Cells);
  localparam int unsigned CountWidth = $clog2(BufferCells + 1);
  localparam int unsigned OffsetWidth = $clog2(CellFlits);
  localparam int unsigned QueueWidth = $clog2(Lanes * Ports) > 0 ? $clog2(Lanes * Ports) : 1;

  // Header, in the first flit of a packet.
  localparam int unsigned LaneAt = 0;
  localparam int unsigned FlitsAt = 4;
  localparam int unsigned LabelAt = 14;

  // What is in the memories needs no reset: nothing is read before it was written.
  logic [FlitBits-1:0] memory[Cells*CellFlits];
  logic [CellWidth-1:0] next_cell[Cells];    // of a packet; of a free list
  logic [CellWidth-1:0] next_packet[Cells];  // first cells: the packet behind in the same queue,
  logic [FlitsWidth-1:0] next_flits[Cells];  // and its length
  logic [PortWidth-1:0] route[Routes];

  // Free cells of a lane: those never used yet, then a list.
  (* mem2reg *) logic [CountWidth-1:0] fresh_q[Lanes];
  (* mem2reg *) logic [CountWidth-1:0] free_q[Lanes];
  (* mem2reg *) logic [CellWidth-1:0] free_head_q[Lanes];
  (* mem2reg *) logic [CellWidth-1:0] free_tail_q[Lanes];

  // Queues: first cells of the first and of the last packet, length of the first.
  logic [Lanes*Ports-1:0] waiting_q;
  (* mem2reg *) logic [CellWidth-1:0] head_q[Lanes*Ports];
  (* mem2reg *) logic [FlitsWidth-1:0] head_flits_q[Lanes*Ports];
  (* mem2reg *) logic [CellWidth-1:0] tail_q[Lanes*Ports];

  function automatic logic [CellsWidth-1:0] cells(input logic [FlitsWidth-1:0] count);
    cells = CellsWidth'((32'(count) + CellFlits - 1) / CellFlits);
  endfunction

  function automatic logic [QueueWidth-1:0] queue(input logic [LaneWidth-1:0] lane,
                                                  input logic [PortWidth-1:0] port);
    queue = QueueWidth'(32'(lane) * Ports + 32'(port));
  endfunction

  // ---- Arrival

  logic valid_q;
  logic [FlitBits-1:0] flit_q;
  logic [FlitsWidth-1:0] left_q;  // flits of the packet still to come
  logic [LaneWidth-1:0] lane_q;
  logic [CellWidth-1:0] cell_q;
  logic [OffsetWidth-1:0] offset_q;

  logic first, new_cell, fresh_left;
  logic [LaneWidth-1:0] lane;
  logic [FlitsWidth-1:0] flits;
  logic [CellWidth-1:0] free_cell, cell_now;
  logic [OffsetWidth-1:0] offset_now;
  logic [QueueWidth-1:0] joined;

  assign first = valid_q && left_q == '0;
  assign lane = first ? LaneWidth'(flit_q[LaneAt+:4]) : lane_q;
  assign flits = FlitsWidth'(flit_q[FlitsAt+:10]);
  assign offset_now = first ? '0 : offset_q;
  assign new_cell = valid_q && offset_now == '0;
  assign fresh_left = fresh_q[lane] != CountWidth'(BufferCells);
  assign free_cell = fresh_left ? CellWidth'(32'(lane) * BufferCells + 32'(fresh_q[lane])) : free_head_q[lane];
  assign cell_now = new_cell ? free_cell : cell_q;

  assign arrived_o = first;
  assign arrived_lane_o = lane;
  assign arrived_cells_o = cells(flits);
  assign arrived_output_o = route[RouteWidth'(flit_q[LabelAt+:16])];
  assign joined = queue(lane, arrived_output_o);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      left_q  <= '0;
    end else begin
      valid_q <= valid_i;
      if (valid_q) left_q <= (first ? flits : left_q) - FlitsWidth'(1);
    end
    if (valid_i) flit_q <= flit_i;
    if (valid_q) begin
      lane_q   <= lane;
      cell_q   <= cell_now;
      offset_q <= offset_now + OffsetWidth'(1);
      memory[{cell_now, offset_now}] <= flit_q;
    end
    if (route_write_i) route[route_label_i] <= route_output_i;
  end

  // ---- Streams

  logic [Streams-1:0] active_q, running_q, done_q;
  (* mem2reg *) logic [PortWidth-1:0] output_q[Streams];
  (* mem2reg *) logic [LaneWidth-1:0] stream_lane_q[Streams];
  (* mem2reg *) logic [FlitsWidth-1:0] stream_left_q[Streams];
  (* mem2reg *) logic [CellsWidth-1:0] cells_q[Streams];
  (* mem2reg *) logic [CellWidth-1:0] first_q[Streams];
  (* mem2reg *) logic [CellWidth-1:0] at_q[Streams];
  (* mem2reg *) logic [OffsetWidth-1:0] at_offset_q[Streams];

  logic [Streams-1:0] reads, ends, gives, idle, starts;
  for (genvar s = 0; s < Streams; s++) begin : g_stream
    assign reads[s] = running_q[s] && advance_i[output_q[s]];
    assign ends[s]  = reads[s] && stream_left_q[s] == FlitsWidth'(1);

    logic [FlitBits-1:0] read_q;
    always_ff @(posedge clk_i) begin
      if (reads[s]) read_q <= memory[{at_q[s], at_offset_q[s]}];
    end
    assign stream_flit_o[s*FlitBits+:FlitBits] = read_q;
  end

  assign idle = ~(active_q | done_q);
  assign starts = idle & (~idle + Streams'(1));
  assign ready_o = idle != '0;

  always_comb begin
    granted_stream_o = '0;
    for (int unsigned s = 0; s < Streams; s++) begin
      if (starts[s]) granted_stream_o = granted_stream_o | StreamWidth'(s);
    end
  end

  logic [QueueWidth-1:0] granted;
  logic [CellWidth-1:0] granted_cell;
  logic one_left;  // the granted packet is the only one of its queue
  assign granted = queue(grant_lane_i, grant_output_i);
  assign granted_cell = head_q[granted];
  assign one_left = granted_cell == tail_q[granted];
  assign granted_flits_o = head_flits_q[granted];
  assign granted_last_o = one_left && !(first && joined == granted);
  assign granted_next_cells_o = cells(next_flits[granted_cell]);
  assign arrived_alone_o = !waiting_q[joined] || (grant_i && one_left && granted == joined);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      waiting_q <= '0;
    end else begin
      if (grant_i && one_left) waiting_q[granted] <= 1'b0;
      if (first) waiting_q[joined] <= 1'b1;
    end
    if (grant_i && !one_left) begin
      head_q[granted] <= next_packet[granted_cell];
      head_flits_q[granted] <= next_flits[granted_cell];
    end
    if (first) begin
      if (arrived_alone_o) begin
        head_q[joined] <= cell_now;
        head_flits_q[joined] <= flits;
      end else begin
        next_packet[tail_q[joined]] <= cell_now;
        next_flits[tail_q[joined]]  <= flits;
      end
      tail_q[joined] <= cell_now;
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned s = 0; s < Streams; s++) begin
      if (grant_i && starts[s]) begin
        output_q[s] <= grant_output_i;
        stream_lane_q[s] <= grant_lane_i;
        stream_left_q[s] <= granted_flits_o;
        cells_q[s] <= cells(granted_flits_o);
        first_q[s] <= granted_cell;
        at_q[s] <= granted_cell;
        at_offset_q[s] <= '0;
      end else if (reads[s]) begin
        stream_left_q[s] <= stream_left_q[s] - FlitsWidth'(1);
        at_offset_q[s] <= at_offset_q[s] + OffsetWidth'(1);
        if (at_offset_q[s] == OffsetWidth'(CellFlits - 1) && !ends[s]) at_q[s] <= next_cell[at_q[s]];
      end
    end
    if (!rst_ni) begin
      active_q  <= '0;
      running_q <= '0;
      done_q    <= '0;
    end else begin
      active_q  <= (active_q & ~ends) | (grant_i ? starts : '0);
      running_q <= (running_q & ~ends) | runs_i | (grant_i && grant_runs_i ? starts : '0);
      done_q    <= (done_q | ends) & ~gives;
    end
  end

  // ---- Cells that come free

  logic [StreamWidth-1:0] turn_q, giver;
  logic any_gives;
  logic [LaneWidth-1:0] free_lane;
  ub_round_robin #(
      .Requesters(Streams)
  ) i_giver (
      .request_i(done_q | ends),
      .next_i(turn_q),
      .grant_o(gives),
      .index_o(giver),
      .any_o(any_gives)
  );
  assign free_lane = stream_lane_q[giver];

  logic takes_listed;  // the arriving packet takes a cell from the list
  assign takes_listed = new_cell && !fresh_left;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      turn_q <= '0;
      credit_valid_o <= 1'b0;
      for (int unsigned l = 0; l < Lanes; l++) begin
        fresh_q[l] <= '0;
        free_q[l]  <= '0;
      end
    end else begin
      credit_valid_o <= any_gives;
      if (any_gives) turn_q <= 32'(giver) == Streams - 1 ? '0 : giver + StreamWidth'(1);
      if (new_cell && fresh_left) fresh_q[lane] <= fresh_q[lane] + CountWidth'(1);
      for (int unsigned l = 0; l < Lanes; l++) begin
        free_q[l] <= free_q[l] + (any_gives && 32'(free_lane) == l ? CountWidth'(cells_q[giver]) : '0)
            - CountWidth'(takes_listed && 32'(lane) == l);
      end
    end
    if (any_gives) begin
      credit_lane_o  <= free_lane;
      credit_cells_o <= cells_q[giver];
    end

    // The list's head moves on where a cell is taken, unless that was the last; a packet given back to an empty
    // list, or to one whose last cell is taken right now, becomes its head.
    if (takes_listed) free_head_q[lane] <= next_cell[free_head_q[lane]];
    if (any_gives) begin
      if (free_q[free_lane] == CountWidth'(takes_listed && lane == free_lane)) free_head_q[free_lane] <= first_q[giver];
      else next_cell[free_tail_q[free_lane]] <= first_q[giver];
      free_tail_q[free_lane] <= at_q[giver];
    end
    if (new_cell && !first) next_cell[cell_q] <= cell_now;
  end

`ifndef YOSYS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      flits_of_a_packet_come_in_consecutive_cycles :
      assert (left_q == '0 || valid_q);
      length_is_allowed :
      assert (!first || (flits != '0 && 32'(flit_q[FlitsAt+:10]) <= MaxFlits));
      lane_exists :
      assert (!first || 32'(flit_q[LaneAt+:4]) < Lanes);
      label_exists :
      assert (!first || 32'(flit_q[LabelAt+:16]) < Routes);
      route_leads_to_an_output :
      assert (!first || 32'(arrived_output_o) < Ports);
      senders_keep_to_their_credits :
      assert (!new_cell || fresh_left || free_q[lane] != '0);
      grants_go_to_packets_and_idle_streams :
      assert (!grant_i || (ready_o && waiting_q[granted]));
      streams_run_for_a_packet :
      assert ((runs_i & ~active_q) == '0);
      for (int unsigned s = 0; s < Streams; s++) begin
        readers_stay_behind_the_writer :
        assert (!(reads[s] && left_q != '0 && at_q[s] == cell_q && offset_q != '0 && at_offset_q[s] >= offset_q));
      end
    end
  end
`endif
endmodule
