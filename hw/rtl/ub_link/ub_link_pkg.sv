// What the two ends of a Unified Bus data link agree on (UB Base Specification 2.0, chapter 4): sizes of headers,
// fields, control blocks. What the public text leaves open is marked "ours".
//
// On the wire byte 0 of a flit is bits 7:0. A packet is cut into blocks; each ends in its BCRC:
//
//   first block    LPH 4 B | content ...                       | BCRC 4 B
//   further block  LBH 2 B | content ...                       | BCRC 4 B
//   control block  LBH 2 B with format 0 | fields by its kind  | BCRC 4 B     one flit
package ub_link_pkg;
  localparam int unsigned HeaderBytes = 4;  // LPH
  localparam int unsigned BlockHeaderBytes = 2;  // LBH
  localparam int unsigned CrcBytes = 4;  // BCRC: two zero bits above a CRC30
  localparam int unsigned MaxBlocks = 16;  // of a packet

  // The polynomial of CRC-30/CDMA, x^30 left out; the specification's own is not public. Bit 0 of a flit goes first.
  localparam logic [29:0] CrcPolynomial = 30'h2030B9C7;
  localparam logic [29:0] CrcStart = 30'h3FFFFFFF;

  // The count of the flits that went into a link's replayable stream, modulo 2^16.
  typedef logic [15:0] position_t;
  // Bytes of a packet behind its LPH.
  typedef logic [13:0] length_t;

  // LBH, and the first half of LPH. That LBH repeats the fields which LPH has there is ours.
  typedef struct packed {
    logic [1:0] route;  // RT, carried
    logic [3:0] format;  // CFG: 0 control block, 1 to 15 carried
    logic [3:0] lane;  // VL; of a control block its kind
    logic [3:0] credit_lane;  // CRD_VL
    logic acknowledge;  // ACK: 32 flits more have been accepted
    logic credit;  // CRD: cells of credit_lane come back
  } block_header_t;

  // What the sender says about a packet, and the receiver's end is told.
  typedef struct packed {
    length_t length;
    logic [3:0] format;
    logic [1:0] route;
  } packet_t;

  // Kinds of control blocks, in the lane's place; the numbers and their fields are ours. Others are ignored.
  localparam logic [3:0] KindNull = 4'd0;  // the wire is idle
  localparam logic [3:0] KindReturns = 4'd1;  // Crd_Ack: bytes 2-3 flits, from byte 4 on 5 bits of cells a lane
  localparam logic [3:0] KindRetryRequest = 4'd2;  // bytes 2-3 position, 4-5 tag
  localparam logic [3:0] KindRetryAnswer = 4'd3;  // Retry_Ack: the same fields; replay begins behind it
  localparam int unsigned CellBits = 5;  // of one lane in Crd_Ack
  localparam int unsigned MaxCells = 31;

  // What a receiver's half owes the other end.
  typedef struct packed {
    logic acknowledge;  // enough for a header's ACK
    logic credit;  // a lane has enough for a header's CRD
    logic [3:0] credit_lane;
    logic wanted;  // worth a control block when the wire has nothing better to do
    logic urgent;  // worth one before the next data block
    position_t flits;  // all accepted flits not acknowledged yet
    logic [79:0] cells;  // of every lane, at most 31 each
  } returns_t;

  // What the sending half takes of that in a cycle.
  typedef struct packed {
    logic header_acknowledge;
    logic header_credit;
    logic block;
  } taken_t;

  // What arrived for the sending half, in one cycle each.
  typedef struct packed {
    position_t acknowledged;  // flits
    logic header_credit;  // a header's CRD
    logic [3:0] credit_lane;
    logic block_credit;  // a Crd_Ack's cells
    logic [79:0] cells;
  } arrived_t;

  // The same for retry.
  typedef struct packed {
    logic ask;  // the own receiver wants a Retry_Req sent
    logic replay;  // the other end asked for replay
    position_t replay_from;
    logic [15:0] replay_tag;
    // Of the own receiver, always valid.
    position_t position;  // accepted flits, modulo 2^16
    logic [15:0] tag;  // of the last Retry_Req asked for
  } retry_t;

  // One cycle each; for counters and waves.
  typedef struct packed {
    logic damaged;  // a block failed its CRC, or said what cannot be: a retry begins
    logic asked;  // a Retry_Req leaves; more than one a retry when one was not answered in time
    logic replayed;  // a Retry_Ack leaves, replay follows
    logic idle;  // a null block leaves
    logic returned;  // a Crd_Ack is made
  } events_t;
endpackage
