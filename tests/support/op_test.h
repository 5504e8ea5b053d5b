/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Harness of the operator tests: tensors of any type in any view with seeded values, a step list run on the test
 * device, and a comparison with a float64 reference, element by element.
 *
 *     op_tensor *x = op_tensor_create(RNL_F16, 4, shape, OP_GAPS), *y = …;
 *     op_fill(x, OP_RANDOM, -2, 2);
 *     op_expect(RNL_OK, rnl_op_map(op_list(), …, &x->view, 1, &y->view));
 *     op_run();
 *     op_check(y, reference, &user, op_tolerance(y->view.dtype));
 *     op_reset();
 *
 * op_main opens the one bench of a program. Tensors and the list live until op_reset, which each case of op_case calls
 * after each test. Each tensor is a slot of its own, numbered as created.
 */
#ifndef RUNNEL_TESTS_OP_TEST_H
#define RUNNEL_TESTS_OP_TEST_H

#include "ops/execute.h"
#include "ops/op.h"
#include <check.h>

/* Runs the suite in this process; the status for main() to return: 77 without a device, or where nothing was looked at.
 */
int op_main(Suite *suite);
/* The last step's program is compiled with this ("-DFIP"). */
bool op_last_has(const char *define);
/* A case of the suite whose tests each start with no tensors. */
TCase *op_case(Suite *suite, const char *name);
/*
 * The same with the device taken for a CPU, so that what is chosen for those runs in the simulators too. NULL without
 * RUNNEL_TEST_SMALL=1: real devices run what is theirs.
 */
TCase *op_case_as_cpu(Suite *suite, const char *name);
void op_reset(void);
/* Something was looked at that no operator of this bench did. */
void op_looked(void);
rnl_device *op_device(void);
const rnl_device_info *op_info(void);
rnl_step_list *op_list(void);
/* True under RUNNEL_TEST_SMALL=1 and on emulated devices: leave out the large sizes. */
bool op_small(void);

/* An element: integers (and BOOL, as 0 or 1) exactly in i, in two's complement for U64, and rounded in f. */
typedef struct op_value {
    double f;
    int64_t i;
} op_value;
op_value op_float(double value);
op_value op_int(int64_t value);

/*
 * Whether this case is to run. With RUNNEL_TEST_EACH=N one in N does, spread as if by chance, and the same in each run;
 * the first of a test always.
 */
bool op_chosen(void);
/* tcase_add_loop_test() of those that are chosen. */
#define op_add_loop(tests, function, start, end)                                                                       \
    do {                                                                                                               \
        op_begin_choice();                                                                                             \
        for (int op_i = (start); op_i < (end); ++op_i)                                                                 \
            if (op_chosen())                                                                                           \
                tcase_add_loop_test(tests, function, op_i, op_i + 1);                                                  \
    } while (0)
void op_begin_choice(void);

/* Makes the library believe that the device has less than it has; NULL: the truth again. */
typedef struct op_limits {
    bool gpu;
    uint32_t vector_width;
    uint64_t work_items, local_bytes;
} op_limits;
void op_pretend(const op_limits *limits);

typedef enum op_layout {
    OP_ROW_MAJOR,
    OP_CHANNELS_LAST,
    OP_GAPS,     /* odd strides with unused elements between, and an offset */
    OP_REVERSED, /* row-major with every second dimension walked backwards */
    OP_SHUFFLED, /* dense, dimensions in another memory order */
    OP_LAYOUT_COUNT
} op_layout;

typedef struct op_tensor {
    rnl_view view;
    size_t slot_elements;
    unsigned char *data; /* the slot's content: uploaded by op_run, and read back */
    unsigned char *sent; /* what was uploaded */
} op_tensor;

op_tensor *op_tensor_create(rnl_dtype dtype, size_t rank, const int64_t *shape, op_layout layout);
/* The same with stride 0 in the dimensions whose bit is set in `repeated`: a source that repeats there. */
op_tensor *op_tensor_create_repeated(rnl_dtype dtype, size_t rank, const int64_t *shape, op_layout layout,
                                     uint32_t repeated);
int64_t op_elements(const op_tensor *tensor);
/* Coordinates of the element with row-major number `flat`. */
void op_coordinates(const op_tensor *tensor, int64_t flat, int64_t coordinates[RNL_MAX_RANK]);
op_value op_get(const op_tensor *tensor, const int64_t *coordinates);
/* As `tensor` broadcasts, from the right, to a shape of `rank` dimensions in which `coordinates` lie. */
op_value op_get_broadcast(const op_tensor *tensor, size_t rank, const int64_t *coordinates);
void op_put(op_tensor *tensor, const int64_t *coordinates, op_value value); /* rounds to the type, to nearest even */
/* The value as it comes back from a tensor of this type. */
op_value op_round(rnl_dtype dtype, op_value value);

typedef enum op_fill_kind {
    OP_RANDOM,  /* uniform in [low, high]; integers include both ends */
    OP_SPECIAL, /* the same, and one in three a zero of either sign, NaN, infinity, denormal, largest, or smallest */
    OP_COUNTING /* low, low + 1, … up to high and again */
} op_fill_kind;
void op_fill(op_tensor *tensor, op_fill_kind kind, double low, double high);
/* Random 64 bits, the same in each run. */
uint64_t op_random(void);
double op_random_between(double low, double high);

/* Uploads all tensors, runs the list's steps in order, and reads the written slots back. */
void op_run(void);

typedef struct op_bound {
    double relative, absolute;
} op_bound;
/* For results that are computed in f32 (f64 for F64) and rounded once to the type. */
op_bound op_tolerance(rnl_dtype dtype);
typedef op_value (*op_reference)(void *user, const int64_t *coordinates);
/*
 * Each element is the reference's, rounded to the type, within the bound; integers exactly; NaN where it is NaN;
 * infinity where it is that. Everything around the elements is as it was sent.
 */
void op_check(const op_tensor *tensor, op_reference reference, void *user, op_bound bound);
void op_check_untouched(const op_tensor *tensor);
/* The status is what is expected; a failure has a message. */
void op_expect_at(const char *file, int line, rnl_status expected, rnl_status got);
#define op_expect(expected, got) op_expect_at(__FILE__, __LINE__, expected, got)
/* Adds to the messages of failing checks, until op_reset. */
void op_note(const char *format, ...) RNL_PRINTF(1, 2);

#endif
