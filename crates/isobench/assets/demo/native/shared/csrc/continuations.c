/* How often each token follows a context: the part of the model that is compiled. */

#include <stddef.h>
#include <stdint.h>

/* Adds to counts, which has a place for each token, how often that token follows the context in the corpus. */
void count_continuations(const int32_t *corpus, size_t corpus_length, const int32_t *context, size_t length,
                         int32_t *counts)
{
    for (size_t position = length; position < corpus_length; position++) {
        size_t equal = 0;
        while (equal < length && corpus[position - length + equal] == context[equal])
            equal++;
        if (equal == length)
            counts[corpus[position]]++;
    }
}
